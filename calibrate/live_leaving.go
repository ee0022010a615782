package calibrate

import (
	"context"
	"slices"
	"time"

	"sparseserve/cuda/live"
	"sparseserve/hw"
	"sparseserve/sim"
	"sparseserve/sim/des"
	"sparseserve/sim/dsa"
)

// What the host does in a step beside what it does in every step shows in a server that requests leave one after another: it has steps of each
// number of decodes in which nothing changes, steps in which some request's lists are looked up whole because it has a block more, and steps behind
// a request's end, whose blocks the cache takes back.

// leavingSteps are those between two requests' ends, half of them split into phases.
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
	tight  bool // room for so little that each layer loads
	single bool // one request at a time
}

// splitEvery says which steps are split into phases: the marks are calls of the
// CPU, and where the host's part is to be seen each other step is without.
func (k leavingKind) splitEvery() int64 {
	if k.held || k.lookup {
		return 0
	}
	return 2
}

// leavingKind is the kind of server that a point asks for.
func (p Point) leavingKind() (k leavingKind) {
	switch p.Probe {
	case probeLivePSA, probeLiveUnsplitPSA, probeLiveHeldPSA, probeLiveLookupPSA, probeLiveTightPSA, probeLiveCPUPSA:
		k.psa = true
	}
	switch p.Probe {
	case probeLiveDense, probeLiveChunk:
		k.held, k.dense = true, true
	case probeLivePrompt:
		k.held, k.dense, k.single = true, true, true
	case probeLiveHeld, probeLiveHeldPSA:
		k.held = true
	case probeLiveLookup, probeLiveLookupPSA:
		k.lookup = true
	case probeLiveCPU, probeLiveCPUPSA, probeLiveTight, probeLiveTightPSA:
		k.lookup, k.tight = true, p.At("missing") > 0
	}
	return k
}

// leavingMost is how many requests the server of a kind begins with: prompts take
// long to prefill, and KV of a model with many KV heads much memory.
func leavingMost(shape string, k leavingKind) int64 {
	if shape == shapes[0] || k.single {
		return 8
	}
	return 16
}

// singleOutput is what a request of a server of one at a time generates: the card
// decodes for some 200 ms, in which its clock rises.
const singleOutput = 40

// tightRooms are the room of tight servers by shape, of what one step of top-k
// selects: PSA selects more, the more so the fewer queries share its lists.
var tightRooms = map[string]float64{shapes[0]: 1.5, shapes[1]: 1.2}

// leavingCase is the server of a point.
func (p Point) leavingCase() (*leavingCase, error) {
	m, err := shapeModel(p.Shape)
	if err != nil {
		return nil, err
	}
	model := *m
	model.Layers = int(p.At("layers"))
	kind := p.leavingKind()
	c := newLeavingCase(&model, int(leavingMost(p.Shape, kind)), kind, leavingSteps)
	if kind.tight {
		c.room = tightRooms[p.Shape]
	}
	return c, nil
}

func newLeavingCase(m *hw.Model, requests int, kind leavingKind, every int) *leavingCase {
	probe := probeLiveOffload
	if kind.dense {
		probe = probeLive
	}
	c := newLiveCase(m, probe, requests)
	c.steps = every*c.requests + 2
	return &leavingCase{liveCase: *c, kind: kind, every: every}
}

// config is the server's configuration but for its device.
func (c *leavingCase) config() (sim.Config, error) {
	cfg := c.server()
	spec := &cfg.Spec
	if c.kind.single {
		spec.MaxRequests = 1
	}
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
	if c.kind.single {
		return slices.Repeat([]int{singleOutput}, c.requests)
	}
	var n []int
	for i := range c.requests {
		n = append(n, 1+c.chunks()*(c.requests-1-i)+liveSettling+2+(c.requests-i)*c.every)
	}
	return n
}

// serve serves all requests, on the live device or on another.
func (c *leavingCase) serve(cfg sim.Config, device *live.Device) (*leavingTimes, error) {
	c.selections(&cfg, c.prompt+c.outputs()[0])
	server, err := sim.NewServer(cfg)
	if err != nil {
		return nil, err
	}
	_, modelled := cfg.Device.(*hw.Device)
	rec := &leavingTimes{requests: c.requests, chunksEach: c.chunks(), device: device, modelled: modelled}
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
	err = c.onLive(m, &cfg, c.kind.splitEvery(), func(device *live.Device) (loaded int64, err error) {
		if t, err = c.serve(cfg, device); err != nil {
			return 0, err
		}
		return t.loaded, nil
	})
	return t, err
}

// leavingMeans are those of a layer in steps of some number of requests, rounded.
type leavingMeans struct {
	rounds int64 // microbatches of its longest list
	loads  int64
}

// means are those of the same server on a device that does nothing, by requests.
func (c *leavingCase) means() (map[int64]leavingMeans, error) {
	cfg, err := c.config()
	if err != nil {
		return nil, err
	}
	cfg.Device = &idle{}
	t, err := c.serve(cfg, nil)
	if err != nil {
		return nil, err
	}
	all := map[int64]leavingMeans{}
	for requests, steps := range t.counted {
		n := steps * int64(c.model.Layers)
		all[int64(requests)] = leavingMeans{(t.rounds[requests] + n/2) / n, (t.loads[requests] + n/2) / n}
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
	requests   int
	chunksEach int          // of a prompt
	device     *live.Device // nil: none that counts
	modelled   bool         // whose steps need no events to be split

	host, unsplit, cpu map[int][]float64 // by decodes, where nothing changes: the host's of split steps, all of the others, and what the CPU was busy
	chunks             map[int][]float64 // by chunks of the prompt before: all of a step with a chunk, the first prompt's apart
	prefilled          int               // chunks so far

	// All of steps where nothing changes, where lists are looked up whole, and behind a request's end.
	steady, whole, freed map[alike][]float64

	rounds, loads, counted map[int]int64 // by decodes: rounds and loads of all layers, and steps
	loaded                 int64
	all                    int // steps of decodes alone
	last                   sim.StepRecord
	worked                 time.Duration
}

// alike are steps that may be compared.
type alike struct {
	decodes int
	split   bool
}

func (t *leavingTimes) Request(*sim.Record) error { return nil }
func (t *leavingTimes) Gap(des.Time)              {}
func (t *leavingTimes) Step(r *sim.StepRecord) error {
	before, busy := t.last, t.busy()
	t.last = *r
	t.loaded += r.Loaded
	if r.Prefills > 0 {
		t.prefill(r.Timing.Elapsed.Seconds())
		return nil
	}
	if r.Decodes == 0 {
		return nil
	}
	if t.all++; t.all <= liveSettling {
		return nil
	}
	if t.steady == nil {
		t.host, t.unsplit, t.cpu = map[int][]float64{}, map[int][]float64{}, map[int][]float64{}
		t.steady, t.whole, t.freed = map[alike][]float64{}, map[alike][]float64{}, map[alike][]float64{}
		t.rounds, t.loads, t.counted = map[int]int64{}, map[int]int64{}, map[int]int64{}
	}
	n, phases := r.Decodes, &r.Timing.Phases
	t.rounds[n] += r.Rounds
	t.loads[n] += r.Loaded
	t.counted[n]++
	kind := t.steady
	switch ended, begins := n < before.Decodes, before.Saved > 0; {
	case r.Saved > 0 || ended && begins:
		return nil // what is saved is named too
	case ended:
		kind = t.freed
	case begins: // a block, behind the one that became full
		kind = t.whole
	default:
		t.cpu[n] = append(t.cpu[n], busy)
		if phases.Unsplit > 0 || t.modelled {
			t.unsplit[n] = append(t.unsplit[n], r.Timing.Elapsed.Seconds())
		} else {
			t.host[n] = append(t.host[n], phases.Host.Seconds())
		}
	}
	at := alike{n, phases.Unsplit == 0}
	kind[at] = append(kind[at], r.Timing.Elapsed.Seconds())
	return nil
}

// prefill notes a step with a chunk. Prompts come one after another, but that a step
// has room for some tokens of the next while few decode, a request's each; what the
// first finds is a card that has rested.
func (t *leavingTimes) prefill(seconds float64) {
	before := t.prefilled % t.chunksEach
	if t.prefilled++; t.prefilled <= t.chunksEach {
		return
	}
	if t.chunks == nil {
		t.chunks = map[int][]float64{}
	}
	t.chunks[before] = append(t.chunks[before], seconds)
}

// busy is how long the CPU was in the step that has just ended, but for rounds that load.
func (t *leavingTimes) busy() float64 {
	if t.device == nil {
		return 0
	}
	c := t.device.Counters()
	all := c.Working - c.InRounds
	busy := all - t.worked
	t.worked = all
	return busy.Seconds()
}

// more is by how much steps of a kind are longer than those in which nothing changes.
func (t *leavingTimes) more(kind map[alike][]float64) (seconds []float64) {
	for n := t.requests; n > 0; n-- { // in a fixed order
		for _, split := range []bool{true, false} {
			at := alike{n, split}
			if steady := t.steady[at]; len(steady) > 0 {
				usual := medianOf(steady).Value
				for _, s := range kind[at] {
					seconds = append(seconds, max(s-usual, 1e-9))
				}
			}
		}
	}
	return seconds
}
