package calibrate

import (
	"context"

	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/dsa"
)

// A server that requests leave one after another has steps of each number of decodes in which
// nothing changes, and steps behind a request's end, whose blocks the cache takes back.

// leavingSteps are those between two requests' ends.
const leavingSteps = 16

// psaMicro is the microbatch of PSA's servers, blocks.
const psaMicro = 16

// leavingCase is such a server.
type leavingCase struct {
	liveCase
	kind  leavingKind
	every int // steps between two requests' ends
}

// leavingKind is what sets such a server apart.
type leavingKind struct {
	psa    bool
	held   bool // KV stays in HBM: nothing is offloaded
	dense  bool // attention to whole contexts, held
	lookup bool // by the GPU
}

// leavingKind is the kind of server that a point asks for.
func (p Point) leavingKind() leavingKind { return kindOf(p.Probe) }

func kindOf(probe string) (k leavingKind) {
	switch probe {
	case probeLiveDense:
		k.held, k.dense = true, true
	case probeLiveHeld:
		k.held = true
	case probeLiveHeldPSA:
		k.held, k.psa = true, true
	case probeLiveLookup:
		k.lookup = true
	case probeLiveLookupPSA:
		k.lookup, k.psa = true, true
	}
	return k
}

// leavingMost is how many requests a server begins with: prompts take
// long to prefill, and KV of a model with many KV heads much memory.
func leavingMost(shape string) int64 {
	if shape == shapes[0] {
		return 8
	}
	return 16
}

// leavingCase is the server of a point.
func (p Point) leavingCase() (*leavingCase, error) {
	return newServerCase(p.Shape, p.At("layers"), p.leavingKind())
}

func newServerCase(shape string, layers int64, kind leavingKind) (*leavingCase, error) {
	m, err := shapeModel(shape)
	if err != nil {
		return nil, err
	}
	model := *m
	model.Layers = int(layers)
	return newLeavingCase(&model, int(leavingMost(shape)), kind, leavingSteps), nil
}

func newLeavingCase(m *hw.Model, requests int, kind leavingKind, every int) *leavingCase {
	c := newLiveCase(m, kind.dense, requests)
	c.steps = every*c.requests + 2
	return &leavingCase{liveCase: *c, kind: kind, every: every}
}

// config is the server's configuration but for its device.
func (c *leavingCase) config() (sim.Config, error) {
	cfg := c.server()
	spec := &cfg.Spec
	spec.Offload = !c.kind.held
	if c.kind.lookup {
		spec.Lookup = sim.LookupGPU
	}
	if !c.kind.psa {
		return cfg, nil
	}
	spec.Selection, spec.Epsilon, spec.Microbatch, spec.Pipelined, spec.PSAStop = "psa", 0.95, psaMicro, true, sim.PSAStopHead
	spec.SinkBlocks, spec.WindowBlocks = 0, 1
	policy, named, err := spec.Policy()
	if err != nil {
		return cfg, err
	}
	cfg.Library = libraryOf(policy, dsa.Setting{Digest: named.Digest, Window: 1, Queries: c.model.QHeads / c.model.KVHeads})
	return cfg, nil
}

// chunks are those of a prompt.
func (c *leavingCase) chunks() int { return (c.prompt + liveChunk - 1) / liveChunk }

// outputs are those of the requests in order: prompts are prefilled one by one, and the last is the first to leave, so that no other's rows move,
// two steps behind any step that fills a block.
func (c *leavingCase) outputs() []int {
	var n []int
	for i := range c.requests {
		n = append(n, 1+c.chunks()*(c.requests-1-i)+liveSettling+2+(c.requests-i)*c.every)
	}
	return n
}

// serve serves all requests, on the live device or on another.
func (c *leavingCase) serve(cfg sim.Config) (*leavingTimes, error) {
	c.selections(&cfg, c.prompt+c.outputs()[0])
	server, err := sim.NewServer(cfg)
	if err != nil {
		return nil, err
	}
	rec := &leavingTimes{requests: c.requests}
	if _, err = server.Run(context.Background(), &leavingRequests{prompt: c.prompt, outputs: c.outputs()}, rec); err != nil {
		return nil, err
	}
	return rec, nil
}

// times serves on a machine.
func (c *leavingCase) times(m live.Machine) (t *leavingTimes, err error) {
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

// rounds are how many microbatches a layer's longest list has in the mean, by requests,
// rounded: of the same server on a device that does nothing.
func (c *leavingCase) rounds() (map[int64]int64, error) {
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

// leavingRequests is a workload of requests that all arrive at the start.
type leavingRequests struct {
	prompt  int
	outputs []int
}

// Next implements sim.Workload.
func (w *leavingRequests) Next() (a sim.Arrival, more bool, err error) {
	if len(w.outputs) == 0 {
		return a, false, nil
	}
	a = sim.Arrival{Prompt: w.prompt, Output: w.outputs[0]}
	w.outputs = w.outputs[1:]
	return a, true, nil
}

// leavingTimes sorts a server's steps, in seconds.
type leavingTimes struct {
	requests int

	steady, freed   map[int][]float64 // by decodes: steps where nothing changes, and those behind a request's end
	rounds, counted map[int]int64     // by decodes: rounds of all layers, and steps

	loaded int64
	all    int // steps of decodes alone
	last   sim.StepRecord
}

func (t *leavingTimes) Request(*sim.RequestRecord) error { return nil }
func (t *leavingTimes) Gap(des.Time)                     {}
func (t *leavingTimes) Step(r *sim.StepRecord) error {
	before := t.last
	t.last = *r
	t.loaded += r.Loaded
	if r.Prefills > 0 || r.Decodes == 0 {
		return nil
	}
	if t.all++; t.all <= liveSettling {
		return nil
	}
	if t.steady == nil {
		t.steady, t.freed = map[int][]float64{}, map[int][]float64{}
		t.rounds, t.counted = map[int]int64{}, map[int]int64{}
	}
	n, seconds := r.Decodes, r.Timing.Elapsed.Seconds()
	t.rounds[n] += r.Rounds
	t.counted[n]++
	switch ended, begins := n < before.Decodes, before.Saved > 0; {
	case r.Saved > 0 || begins: // what is saved is named too, and lists of a new block are looked up whole
	case ended:
		t.freed[n] = append(t.freed[n], seconds)
	default:
		t.steady[n] = append(t.steady[n], seconds)
	}
	return nil
}

// longer is by how much steps behind a request's end are longer than those in which
// nothing changes.
func (t *leavingTimes) longer() (seconds []float64) {
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
