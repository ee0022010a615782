package calibrate

import (
	"context"
	"fmt"

	"sparseserve/cuda/live"
	"sparseserve/sim"
	"sparseserve/sim/des"
	"sparseserve/sim/dsa"
	"sparseserve/traces"
)

// What the host does in a step beside what it does in every step shows in a server that requests leave one after another: it has steps of each
// number of decodes in which nothing changes, steps in which some request's lists are looked up whole because it has a block more, and steps behind
// a request's end, whose blocks the cache takes back.

// leavingSteps are those in which a server's requests leave, about.
const leavingSteps = 96

// psaMicro is the microbatch of PSA's servers, blocks.
const psaMicro = 16

// leavingCase is such a server.
type leavingCase struct {
	liveCase
	kind  string
	every int // steps between two requests' ends
}

// Kinds of leavingCase.
const (
	leavingTopK = "topk"
	leavingPSA  = "psa"
)

// leavingKinds are those of the probes.
var leavingKinds = map[string]string{
	probeLiveLeaving: leavingTopK, probeLiveWhole: leavingTopK, probeLiveFreed: leavingTopK, probeLivePSA: leavingPSA,
}

// leavingMost is how many requests the server of a kind begins with: prompts of a model with many KV heads take long to prefill.
func leavingMost(shape, kind string) int64 {
	if shape == shapes[0] && kind == leavingPSA {
		return 4
	}
	return 8
}

// leavingCase is the server of a point.
func (p Point) leavingCase() (*leavingCase, error) {
	m, err := shapeModel(p.Shape)
	if err != nil {
		return nil, err
	}
	model := *m
	model.Layers = int(p.At("layers"))
	kind := leavingKinds[p.Probe]
	requests := int(leavingMost(p.Shape, kind))
	return newLeavingCase(newLiveCase(&model, probeLiveOffload, requests), kind, leavingSteps/requests), nil
}

func newLeavingCase(c *liveCase, kind string, every int) *leavingCase {
	c.steps = every*c.requests + 2
	return &leavingCase{liveCase: *c, kind: kind, every: every}
}

// config is the server's configuration but for its device.
func (c *leavingCase) config() (sim.Config, error) {
	cfg := c.server()
	spec := &cfg.Spec
	if c.kind == leavingTopK {
		return cfg, nil
	}
	spec.Selection, spec.Epsilon, spec.Microbatch, spec.Pipelined, spec.PSAStop = "psa", 0.95, psaMicro, true, sim.PSAStopHead
	spec.SinkBlocks, spec.WindowBlocks = 0, 1
	policy, named, err := spec.Policy()
	if err != nil {
		return cfg, err
	}
	cfg.Library = dsa.NewLibrary(traces.NewScores(traces.DefaultScores, 1), policy,
		dsa.Setting{Digest: named.Digest, Window: 1, Queries: c.model.QHeads / c.model.KVHeads}, liveFamilies)
	return cfg, nil
}

// outputs are those of the requests in order: prompts are prefilled one by one, and the last is the first to leave, so that no other's rows move,
// two steps behind any step that fills a block.
func (c *leavingCase) outputs() []int {
	chunks := (c.prompt + liveChunk - 1) / liveChunk
	var n []int
	for i := range c.requests {
		n = append(n, 1+chunks*(c.requests-1-i)+liveSettling+2+(c.requests-i)*c.every)
	}
	return n
}

// serve serves all requests.
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
	err = c.onLive(m, &cfg, 1, func(*live.Device) (loaded int64, err error) {
		if t, err = c.serve(cfg); err != nil {
			return 0, err
		}
		return t.loaded, nil
	})
	return t, err
}

// rounds is how many microbatches a layer's longest list has in steps of so many requests, rounded: of the same server on a device that does
// nothing.
func (c *leavingCase) rounds(requests int64) (int64, error) {
	cfg, err := c.config()
	if err != nil {
		return 0, err
	}
	cfg.Device = &idle{}
	t, err := c.serve(cfg)
	if err != nil {
		return 0, err
	}
	n := t.counted[int(requests)] * int64(c.model.Layers)
	if n == 0 {
		return 0, fmt.Errorf("no step of %d requests", requests)
	}
	return (t.rounds[int(requests)] + n/2) / n, nil
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

// leavingTimes sorts the host's seconds of a server's steps.
type leavingTimes struct {
	requests int

	steady       map[int][]float64 // by decodes, where nothing changes
	whole, freed map[int][]float64 // the same where lists are looked up whole, and behind a request's end

	rounds, counted map[int]int64 // by decodes: rounds of all layers, and steps
	loaded          int64
	all             int // steps of decodes alone
	last            sim.StepRecord
}

func (t *leavingTimes) Request(*sim.Record) error { return nil }
func (t *leavingTimes) Gap(des.Time)              {}
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
		t.steady, t.whole, t.freed = map[int][]float64{}, map[int][]float64{}, map[int][]float64{}
		t.rounds, t.counted = map[int]int64{}, map[int]int64{}
	}
	t.rounds[r.Decodes] += r.Rounds
	t.counted[r.Decodes]++
	seconds := r.Timing.Phases.Host.Seconds()
	kind := t.steady
	switch ended, begins := r.Decodes < before.Decodes, before.Saved > 0; {
	case r.Saved > 0 || ended && begins:
		return nil // what is saved is named too
	case ended:
		kind = t.freed
	case begins: // a block, behind the one that became full
		kind = t.whole
	}
	kind[r.Decodes] = append(kind[r.Decodes], seconds)
	return nil
}

// more is by how much steps of a kind are longer than those in which nothing changes.
func (t *leavingTimes) more(kind map[int][]float64) (seconds []float64) {
	for n := t.requests; n > 0; n-- { // in a fixed order
		if steady := t.steady[n]; len(steady) > 0 {
			usual := medianOf(steady).Value
			for _, s := range kind[n] {
				seconds = append(seconds, max(s-usual, 1e-9))
			}
		}
	}
	return seconds
}
