package calibrate

import (
	"context"
	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"slices"
	"sync"
)

// The batch of a draining server shrinks by one request at a time. For each number of decodes it
// yields steady steps, and one step after a request ends, whose blocks the cache frees.

// drainSteps is the number of steps between two requests' ends. hostSteps replaces it for the two
// servers with selection by the CPU. Their difference is the CPU's round trip, which varies more
// between steps than the GPU's work.
const (
	drainSteps = 16
	hostSteps  = 48
)

// psaMicro is the microbatch of servers with PSA, in blocks.
const psaMicro = 16

// A server with chunks begins with few requests. While they decode, a client sends small prompts,
// each chunkPause after the previous one has ended, as the turns of a session arrive. Each prompt
// has two chunks. The second is a sample, because no request begins in its step.
const (
	chunkDecodes = 3                    // requests that decode at the start
	chunkRows    = 256                  // of a step's linears at most, its decodes among them
	chunkSteps   = 160                  // between two requests' ends
	chunkPause   = 40 * des.Millisecond // some steps
)

// drainRun is a server whose batch drains.
type drainRun struct {
	liveCase
	kind  drainConfig
	every int      // steps between two requests' ends
	chunk int      // tokens
	pause des.Time // of the client that sends chunks
}

// drainConfig identifies the kind of a draining server.
type drainConfig struct {
	psa    bool
	held   bool // KV stays in HBM: nothing is offloaded
	dense  bool // attention to whole contexts, held
	lookup bool // by the GPU
	chunks bool // small prompts are prefilled while the others decode
}

// every returns the number of steps between two requests' ends.
func (k drainConfig) every() int {
	if k.chunks {
		return chunkSteps
	}
	if k == (drainConfig{}) || k == (drainConfig{held: true}) {
		return hostSteps
	}
	return drainSteps
}

func newServerRun(shape string, layers int64, kind drainConfig) (*drainRun, error) {
	m, err := shapeModel(shape)
	if err != nil {
		return nil, err
	}
	model := *m
	model.Layers = int(layers)
	requests := int(drainMost(shape))
	if kind.chunks {
		requests = chunkDecodes
	}
	return newDrainRun(&model, requests, kind, kind.every()), nil
}

func newDrainRun(m *hw.Model, requests int, kind drainConfig, every int) *drainRun {
	c := newLiveCase(m, kind.dense, requests)
	c.steps = every*c.requests + 2
	run := &drainRun{liveCase: *c, kind: kind, every: every, chunk: liveChunk, pause: chunkPause}
	if kind.chunks {
		run.chunk = chunkRows - requests
	}
	return run
}

// config returns the server's configuration without its device.
func (c *drainRun) config() (sim.Config, error) {
	cfg := c.server()
	spec := &cfg.Spec
	spec.Offload.On = !c.kind.held
	if c.kind.chunks {
		spec.MaxRequests++
		spec.Prefill.ChunkTokens, spec.MaxTokens = c.chunk, c.chunk+c.requests
	}
	if c.kind.lookup {
		spec.Offload.Lookup = sim.LookupGPU
	}
	if !c.kind.psa {
		return cfg, nil
	}
	spec.Selection.Policy, spec.Selection.Epsilon, spec.Selection.Microbatch,
		spec.Selection.Pipelined, spec.Selection.Stop = "psa", 0.95,
		psaMicro, true, sim.PSAStopHead
	spec.Selection.SinkBlocks, spec.Selection.RecentBlocks = 0, 1
	policy, named, err := spec.Policy(1)
	if err != nil {
		return cfg, err
	}
	cfg.Library = libraryOf(policy,
		dsa.Setting{Digest: named.Digest, Window: 1, Queries: c.model.QHeads / c.model.KVHeads})
	return cfg, nil
}

// chunks returns the number of chunks of a prompt.
func (c *drainRun) chunks() int { return (c.prompt + c.chunk - 1) / c.chunk }

// outputs returns the output tokens of each request. They fall with the request's index, so the
// batch drains from its end and no row is renumbered. Each request ends two steps after a block
// boundary.
func (c *drainRun) outputs() []int {
	var n []int
	for i := range c.requests {
		n = append(n, 1+c.chunks()*(c.requests-1-i)+liveSettling+2+(c.requests-i)*c.every)
	}
	return n
}

// serve serves all requests, on the live device or on a model of it.
func (c *drainRun) serve(cfg sim.Config) (*drainTimes, error) {
	c.selections(&cfg, c.prompt+c.outputs()[0])
	server, err := sim.NewServer(cfg)
	if err != nil {
		return nil, err
	}
	rec := &drainTimes{requests: c.requests}
	load := sim.Workload(&requestsAtStart{c.prompt, c.outputs()})
	if c.kind.chunks {
		load = &turnsMeanwhile{Workload: load, prompt: 2 * c.chunk, decoding: c.requests,
			pause: c.pause}
	}
	if _, err = server.Run(context.Background(), load, rec); err != nil {
		return nil, err
	}
	return rec, nil
}

// times serves all requests on a machine.
func (c *drainRun) times(m live.Machine) (t *drainTimes, err error) {
	cfg, err := c.config()
	if err != nil {
		return nil, err
	}
	err = c.onLive(m, &cfg, 0, func(*live.Device) (loaded int64, err error) {
		if t, err = c.serve(cfg); err != nil {
			return 0, err
		}
		return t.loaded, nil
	})
	return t, err
}

// rounds returns the mean number of microbatches of a layer's longest list, rounded, by the number
// of requests. It serves the same requests on an idle device.
func (c *drainRun) rounds() (map[int64]int64, error) {
	cfg, err := c.config()
	if err != nil {
		return nil, err
	}
	cfg.Device = &idle{}
	t, err := c.serve(cfg)
	if err != nil {
		return nil, err
	}
	all := map[int64]int64{}
	for requests, steps := range t.counted {
		n := steps * int64(c.model.Layers)
		all[int64(requests)] = (t.rounds[requests] + n/2) / n
	}
	return all, nil
}

// turnsMeanwhile is a workload with one additional client, which sends prompts sequentially while
// other requests decode.
type turnsMeanwhile struct {
	sim.Workload
	prompt, decoding int
	begun            bool
	pause            des.Time
}

const turnsSession = "turns"

// Next implements sim.Workload: the client comes last.
func (w *turnsMeanwhile) Next() (a sim.Arrival, more bool, err error) {
	if a, more, err = w.Workload.Next(); more || err != nil || w.begun {
		return a, more, err
	}
	w.begun = true
	return w.turn(0), true, nil
}

func (w *turnsMeanwhile) turn(at des.Time) sim.Arrival {
	return sim.Arrival{At: at, Prompt: w.prompt, Output: 1, Session: turnsSession}
}

// Follow implements sim.Sessions.
func (w *turnsMeanwhile) Follow(ended sim.Arrival, at des.Time, _ bool) (sim.Arrival, bool, error) {
	if ended.Session != turnsSession {
		w.decoding--
		return sim.Arrival{}, false, nil
	}
	return w.turn(at + w.pause), w.decoding > 0, nil
}

// drainTimes sorts a server's steps, in seconds.
type drainTimes struct {
	requests int

	// by decodes: steady steps, steps after a request's end, and steps that continue a prompt
	steady, freed, chunks map[int][]float64
	rounds, counted       map[int]int64 // by decodes: rounds of all layers, and steps

	loaded int64
	all    int // steps of decodes only
	last   sim.StepRecord
}

func (t *drainTimes) Request(*sim.RequestRecord) error { return nil }
func (t *drainTimes) Gap(des.Time)                     {}
func (t *drainTimes) Step(r *sim.StepRecord) error {
	before := t.last
	t.last = *r
	t.loaded += r.Loaded
	if r.Decodes == 0 {
		return nil
	}
	if r.Prefills == 0 {
		t.all++
	}
	if t.all <= liveSettling {
		return nil
	}
	if t.steady == nil {
		t.steady, t.freed, t.chunks = map[int][]float64{}, map[int][]float64{}, map[int][]float64{}
		t.rounds, t.counted = map[int]int64{}, map[int]int64{}
	}
	n, seconds := r.Decodes, r.Timing.Elapsed.Seconds()
	if r.Prefills > 0 {
		if before.Prefills > 0 {
			t.chunks[n] = append(t.chunks[n], seconds)
		}
		return nil
	}
	t.rounds[n] += r.Rounds
	t.counted[n]++
	switch ended, begins := n < before.Decodes, before.Saved > 0; {
	// Saved blocks are also named, and a list with a new block is looked up whole.
	case r.Saved > 0 || begins:
	case ended:
		t.freed[n] = append(t.freed[n], seconds)
	default:
		t.steady[n] = append(t.steady[n], seconds)
	}
	return nil
}

// longer returns the extra time of steps after a request's end over steady steps.
func (t *drainTimes) longer(Point) (seconds []float64) {
	for n := t.requests; n > 0; n-- { // in a fixed order
		if steady := t.steady[n]; len(steady) > 0 {
			usual := medianOf(steady).Value
			for _, s := range t.freed[n] {
				seconds = append(seconds, max(s-usual, 1e-9))
			}
		}
	}
	return seconds
}

// drainPoints returns the points of one server for a probe.
func drainPoints(probe, shape string, layers int64, kind drainConfig) (all []Point) {
	for _, n := range drainBatches {
		switch {
		case n > drainMost(shape):
		case kind.psa && !slices.Contains(psaBatches, n):
		case kind.chunks && !slices.Contains(chunkBatches, n):
		case !kind.psa:
			all = append(all, point(probe, shape, layers, n))
		default:
			if rounds := roundsOf(shape, layers, n); rounds > 0 {
				all = append(all, point(probe, shape, layers, n, rounds))
			}
		}
	}
	return all
}

// drainBatches are the batch sizes whose steps are points. PSA and chunks have fewer.
var (
	drainBatches = []int64{16, 12, 8, 6, 4, 3, 2, 1}
	psaBatches   = []int64{16, 8, 3, 2, 1}
	chunkBatches = []int64{3, 1}
)

// roundsOf returns the mean number of microbatches of a layer's longest list in steps of the given
// number of requests with PSA. It does not depend on the device that looks up lists.
func roundsOf(shape string, layers, requests int64) int64 {
	key := drainKey{shape: shape, layers: layers}
	if known, ok := meansKnown.Load(key); ok {
		return known.(map[int64]int64)[requests]
	}
	means := map[int64]int64{}
	if c, err := newServerRun(shape, layers, drainConfig{psa: true}); err == nil {
		if m, err := c.rounds(); err == nil {
			means = m
		}
	}
	meansKnown.Store(key, means)
	return means[requests]
}

var meansKnown sync.Map // drainKey to a layer's rounds by requests

// drainMost returns the number of requests that a server begins with: prompts are slow to prefill,
// and KV of a model with many KV heads is large.
func drainMost(shape string) int64 {
	if shape == shapes[0] {
		return 8
	}
	return 16
}

// priced prices points of servers of the kind by their keys. The model of a card serves the same
// requests as the live server. Points without enough steps are dropped.
func (k drainConfig) priced(p *hw.Profile, all data) (map[string]float64, error) {
	priced := map[string]float64{}
	served := map[drainKey]*drainTimes{}
	for _, at := range all {
		key := drainKey{shape: at.Shape, layers: at.At("layers")}
		if served[key] == nil {
			c, err := newServerRun(at.Shape, at.At("layers"), k)
			if err != nil {
				return nil, err
			}
			if served[key], err = c.modelled(p); err != nil {
				return nil, err
			}
		}
		if steps, err := dealtMedians(k.steps(served[key], at.Point)); err == nil {
			priced[at.Key()] = medianOf(steps).Value
		}
	}
	return priced, nil
}

// modelled serves on the model of a card. Lists do not depend on the device that looks them up, so
// the server need not track where blocks are.
func (c *drainRun) modelled(p *hw.Profile) (*drainTimes, error) {
	held := *c
	held.kind.held, held.kind.lookup = true, false
	cfg, err := held.config()
	if err != nil {
		return nil, err
	}
	spec := &cfg.Spec
	cfg.Device, err = hw.NewDevice(p, c.model, hw.DeviceOptions{
		LoadEngine: spec.Offload.Load, SaveEngine: spec.Offload.Save, Offload: c.kind.lookup,
		GPULookup:       c.kind.lookup,
		SaveBufferBytes: int64(spec.Offload.SaveBufferMiB * mib), Microbatch: spec.Selection.Microbatch,
		Pipelined: spec.Selection.Pipelined, BlockTokens: spec.BlockTokens,
	})
	if err != nil {
		return nil, err
	}
	return held.serve(cfg)
}
