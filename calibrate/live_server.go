package calibrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/cuda/live/parallel"
	"github.com/sparseserve/sparseserve/cuda/weights"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/score"
)

// This file probes the live loop: a server of equal requests on the live device. Its decode-only
// steps are the samples. The host's time per layer depends on the data that it scans, so requests
// and layers have the size of the runs that a profile is for.

const (
	// The first decode step of all requests follows the last prefill; the loop settles in a few more
	// steps.
	liveSettling = 4

	liveRun     = 16 // steps of a sample
	firstRun    = 2  // the same of first decodes, each after a prefill
	afterFirst  = 4  // decodes after the first, of each request of such a server
	liveSamples = 3  // of one server, at the least: its set-up is longer than many steps
	liveBudget  = 2048
	livePrompt  = 8192
	liveChunk   = 2048

	// Realisations of the score process that selections come from, as many as in a run: then the host
	// reads selections from memory and not from a CPU cache.
	liveFamilies = 8
)

// liveCase is one server of a live probe.
type liveCase struct {
	model    *hw.Model
	dense    bool // attention to whole contexts, KV in HBM
	requests int
	prompt   int     // tokens of each
	budget   int     // tokens that a decode selects
	capacity float64 // for selected blocks, of what one step selects; 0: for all blocks
	steps    int     // decode steps of all requests, after those that settle
	// First prefills requests sequentially, layer by layer. A sample is the extra time of a request's
	// first decode over its later ones, because all of its blocks are still in DRAM.
	first bool
}

func newLiveCase(m *hw.Model, dense bool, requests int) *liveCase {
	return &liveCase{model: m, dense: dense, requests: requests, prompt: livePrompt,
		budget: liveBudget, steps: liveRun}
}

// output returns the tokens that a request may generate, so that the first request still runs when
// the last has finished its steps.
func (c *liveCase) output() int {
	if c.first {
		return 2 + afterFirst // one of the prefill
	}
	return (c.prompt/liveChunk+2)*c.requests + liveSettling + c.steps + 2
}

// run returns the number of steps in a sample.
func (c *liveCase) run() int {
	if c.first {
		return firstRun
	}
	return liveRun
}

// blocks returns the number of blocks of all requests in one group.
func (c *liveCase) blocks(g *kv.Geometry) int64 {
	return int64(c.requests * g.Blocks(c.prompt+c.output()))
}

// server returns the configuration of a server whose requests all arrive at once, without its
// device.
func (c *liveCase) server() sim.Config {
	spec := sim.Spec{
		BlockTokens: blockTokens, Utilisation: 0.9, Scheduler: "vllm", MaxRequests: c.requests,
		MaxTokens: liveChunk + c.requests, Simulation: sim.SimulationSpec{Heads: "full"},
		Selection: sim.SelectionSpec{Policy: "arkvale", BudgetTokens: c.budget},
		Offload: sim.OffloadSpec{Load: "flash", Save: "flash", Eviction: "lru", Pool: "unified",
			SaveBufferMiB: 256, WorkingSetSteps: 12},
		Prefill: sim.PrefillSpec{Split: "chunked", ChunkTokens: liveChunk, OverLength: "truncate"},
	}
	cfg := sim.Config{
		Model: sim.Model{Layers: c.model.Layers, KVHeads: c.model.KVHeads,
			MaxContext: 2*c.prompt + c.output()},
		Geometry: c.model.Geometry(spec.BlockTokens),
	}
	g := &cfg.Geometry
	all := c.blocks(g) * int64(g.Groups())
	spec.DRAMGiB = 1.1 * float64(all*g.BlockBytes) / gib
	cfg.HBMBytes = (all + all/10) * (g.BlockBytes + g.MetaBytes)
	if !c.dense {
		spec.Selection.On, spec.Offload.On, spec.Selection.SinkBlocks, spec.Selection.RecentBlocks =
			true, true, 2, 2
		cfg.Library = libraryOf(dsa.TopK{K: sim.Candidates(&spec)},
			dsa.Setting{Digest: dsa.CuboidMean, Sinks: 2, Window: 2})
	}
	if c.first {
		spec.Prefill.Split = "layer"
		cfg.HBMBytes *= 2 // a layer's KV has a buffer besides
	}
	if c.capacity > 0 {
		selected := int64(c.budget/blockTokens + 1)
		cfg.HBMBytes = int64(c.requests*g.Groups())*int64(c.capacity*float64(selected*g.BlockBytes)) +
			all*g.MetaBytes
	}
	cfg.Spec = spec
	return cfg
}

// libraryOf returns the selection library of a policy. Servers with the same policy share one,
// because making it takes longer than a server's run.
func libraryOf(policy dsa.Policy, setting dsa.Setting) *dsa.Library {
	key := fmt.Sprintf("%T %+v %+v", policy, policy, setting)
	l, ok := librariesKnown.Load(key)
	if !ok {
		l, _ = librariesKnown.LoadOrStore(
			key, dsa.NewLibrary(score.New(score.Default, 1), policy, setting, liveFamilies))
	}
	return l.(*dsa.Library)
}

var librariesKnown sync.Map // policy and setting in words to *dsa.Library

// source generates random weights for the model.
func (c *liveCase) source() (*weights.Random, error) {
	m := c.model
	return weights.NewRandom(weights.Config{
		Layers: m.Layers, Hidden: m.Hidden, HeadsQ: m.QHeads, HeadsKV: m.KVHeads, HeadDim: m.HeadDim,
		FFN: m.FFN, Vocab: m.Vocab,
	}, 1)
}

// selections makes all selections before the first step, as a run does.
func (c *liveCase) selections(cfg *sim.Config, longest int) {
	if cfg.Library != nil {
		kept := cfg.Spec.Selection.SinkBlocks + cfg.Spec.Selection.RecentBlocks
		cfg.Library.Make(cfg.Geometry.Blocks(c.prompt)-kept, cfg.Geometry.Blocks(longest)-kept,
			parallel.Do)
	}
}

// serve serves cfg, on the live device or on a model of it, until it has recorded liveSettling plus
// c.steps decode steps of all requests.
func (c *liveCase) serve(cfg sim.Config) (*hostTimes, error) {
	c.selections(&cfg, c.prompt+c.output())
	server, err := sim.NewServer(cfg)
	if err != nil {
		return nil, err
	}
	rec := &hostTimes{requests: c.requests, want: liveSettling + c.steps, first: c.first}
	arrivals := c.requests
	if c.first {
		arrivals = rec.want
	}
	equal := slices.Repeat([]int{c.output()}, arrivals)
	_, err = server.Run(context.Background(), &requestsAtStart{c.prompt, equal}, rec)
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	if len(rec.seconds) < rec.want {
		return nil, fmt.Errorf("wrong result: %d steps of %d decodes, want %d", len(rec.seconds),
			c.requests, rec.want)
	}
	return rec, nil
}

// hostSeconds serves on a machine and returns the host's time of each step after settling.
func (c *liveCase) hostSeconds(m live.Machine) (samples []float64, err error) {
	cfg := c.server()
	err = c.onLive(m, &cfg, 1, func(*live.Device) (loaded int64, err error) {
		rec, err := c.serve(cfg)
		if err != nil {
			return 0, err
		}
		samples = rec.seconds[liveSettling:]
		return rec.loaded, nil
	})
	return samples, err
}

// onLive creates a live device that splits each split-th step into phases, and calls f to serve cfg
// on it. It returns an error if the device and f count different numbers of loaded blocks.
func (c *liveCase) onLive(m live.Machine, cfg *sim.Config, split int64,
	f func(*live.Device) (loaded int64, err error)) error {
	source, err := c.source()
	if err != nil {
		return err
	}
	device, err := live.New(m,
		live.Config{Spec: &cfg.Spec, Geometry: cfg.Geometry, Weights: source, KVBytes: cfg.HBMBytes,
			SplitEvery: split})
	if err != nil {
		return err
	}
	cfg.Device, cfg.Addressed = device, true
	loaded, err := f(device)
	if got := device.Counters(); err == nil && got.Loaded != loaded {
		err = fmt.Errorf("wrong result: the device loaded %d blocks, the server counts %d", got.Loaded,
			loaded)
	}
	if e := device.Close(); err == nil {
		err = e
	}
	return err
}

// loads returns the mean number of blocks that each layer loads per step, rounded. It serves the
// same requests on an idle device.
func (c *liveCase) loads() (int64, error) {
	cfg := c.server()
	cfg.Device = &idle{}
	rec, err := c.serve(cfg)
	if err != nil {
		return 0, err
	}
	loads := int64(0)
	for _, n := range rec.loads[liveSettling:] {
		loads += n
	}
	n := int64(c.steps * c.model.Layers)
	return (loads + n/2) / n, nil
}

// idle is a device that computes nothing; each is the time of a step.
type idle struct {
	steps int64
	each  des.Time
}

func (d *idle) Begin(*sim.Step) error        { return nil }
func (d *idle) Score(int, *sim.Work) error   { return nil }
func (d *idle) Move(*kv.Moves) error         { return nil }
func (d *idle) Compute(int, *sim.Work) error { return nil }
func (d *idle) Drain() (des.Time, error)     { return 0, nil }
func (d *idle) Finish() (sim.Timing, error) {
	d.steps++
	t := sim.Timing{Elapsed: max(1, d.each), SavesDone: 1, SavedSteps: d.steps}
	return t, nil
}

// requestsAtStart is a workload of requests with the given outputs that all arrive at the start.
type requestsAtStart struct {
	prompt  int
	outputs []int
}

// Next implements sim.Workload.
func (w *requestsAtStart) Next() (a sim.Arrival, more bool, err error) {
	if len(w.outputs) == 0 {
		return a, false, nil
	}
	a = sim.Arrival{Prompt: w.prompt, Output: w.outputs[0]}
	w.outputs = w.outputs[1:]
	return a, true, nil
}

// errEnough ends a run when enough steps are recorded.
var errEnough = errors.New("all steps are recorded")

// hostTimes records the host time of steps that decode all requests and prefill none, until it has
// want steps. With first, it records the extra time of each request's first decode over the median
// of its later ones, and how many more blocks the first decode loads than their average.
type hostTimes struct {
	requests, want int
	first          bool
	seconds        []float64
	loads          []int64 // of the same steps
	loaded         int64   // by all
	own            []float64
	ownLoads       int64 // by own[0], less those of the others each
}

func (h *hostTimes) Request(*sim.RequestRecord) error { return nil }
func (h *hostTimes) Gap(des.Time)                     {}
func (h *hostTimes) Step(r *sim.StepRecord) error {
	h.loaded += r.Loaded
	if r.Prefills > 0 {
		h.own = h.own[:0] // what follows is another request's
	} else if r.Decodes == h.requests {
		h.decoded(max(r.Timing.Phases.Host.Seconds(), 1e-9), r.Loaded)
	}
	if h.want > 0 && len(h.seconds) == h.want {
		return errEnough
	}
	return nil
}

func (h *hostTimes) decoded(seconds float64, loads int64) {
	if h.first {
		h.own = append(h.own, seconds)
		if len(h.own) == 1 {
			h.ownLoads = loads * afterFirst
		} else {
			h.ownLoads -= loads
		}
		if len(h.own) <= afterFirst {
			return
		}
		seconds = max(h.own[0]-medianOf(h.own[1:]).Value, 1e-9)
		loads, h.own = h.ownLoads/afterFirst, h.own[:0]
	}
	h.loads, h.seconds = append(h.loads, loads), append(h.seconds, seconds)
}

// layers returns the number of layers of the plan's servers.
func (p *planner) layers() int64 { return pick[int64](p, 32, 2) }

// liveCaseOf returns the server of a point.
func liveCaseOf(p Point, dense bool) (*liveCase, error) {
	m, err := shapeModel(p.Shape)
	if err != nil {
		return nil, err
	}
	model := *m
	model.Layers = int(p.At("layers"))
	return newLiveCase(&model, dense, int(p.At("requests"))), nil
}

func denseCase(p Point) (*liveCase, error) { return liveCaseOf(p, true) }
