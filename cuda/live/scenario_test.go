package live_test

import (
	"context"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/cuda/reference"
	"github.com/sparseserve/sparseserve/cuda/weights"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/sim/prefix"
	"github.com/sparseserve/sparseserve/sim/score"
)

// workload is a handful of requests.
type workload struct {
	next    int
	lengths []length
	content []*prefix.Content // nil: not known
	apart   des.Time
	arrive  []des.Time
}

type length struct{ prompt, output int }

// mixed are short and long, odd and even.
var mixed = []length{{33, 20}, {1, 5}, {130, 18}, {64, 20}, {97, 3}, {16, 33}, {81, 17}}

func (c *scenario) workload() *workload {
	w := &workload{lengths: mixed, content: c.content, apart: 300 * des.Microsecond,
		arrive: c.arrive}
	if c.lengths != nil {
		w.lengths = c.lengths
	}
	if c.content != nil {
		w.apart = 2 * des.Millisecond
	}
	return w
}

func (w *workload) Next() (sim.Arrival, bool, error) {
	if w.next == len(w.lengths) {
		return sim.Arrival{}, false, nil
	}
	l := w.lengths[w.next]
	w.next++
	a := sim.Arrival{At: des.Time(w.next) * w.apart, Prompt: l.prompt, Output: l.output}
	if w.arrive != nil {
		a.At = w.arrive[w.next-1]
	}
	if w.content != nil {
		a.Content = w.content[w.next-1]
	}
	return a, true, nil
}

// run is what a run left.
type run struct {
	*scenario
	metrics *metrics.Run
	model   *reference.Llama
	tokens  map[int][]int32
	logits  map[int]map[int][]cuda.Half // by request and position
	lists   map[place][]int             // blocks that a unit attended to; absent: all
	rows    []sim.Row
	chosen  map[place][]int // by the model's metadata
	used    map[place]int   // blocks that progressive attention counted

	skipped int // layers before a step's last that no row runs

	prefill   prefillKeys
	prefilled map[[2]int][][2]int // spans of tokens, by request and layer

	steps    []metrics.Step
	counters []live.Counters // after each step
}

type place struct{ id, position, layer, head int }

func (c *scenario) run(t *testing.T, m live.Machine) *run {
	t.Helper()
	source, err := weights.NewRandom(c.shape, 7)
	if err != nil {
		t.Fatal(err)
	}
	shape := source.Config()
	r := &run{
		scenario:  c,
		tokens:    map[int][]int32{},
		logits:    map[int]map[int][]cuda.Half{},
		lists:     map[place][]int{},
		chosen:    map[place][]int{},
		used:      map[place]int{},
		prefill:   prefillKeys{},
		prefilled: map[[2]int][][2]int{},
	}
	if r.model, err = weights.Reference(source, cuda.Rounded); err != nil {
		t.Fatal(err)
	}
	model := shape.Model
	device, err := live.New(m, live.Config{
		Patterns: c.patterns, Longest: 200, Listed: r.listed, FindsLines: !c.drawn,
		Spec: &c.spec, Geometry: model.Geometry(c.spec.BlockTokens), Weights: source,
		KVBytes: c.kvBytes, Seed: 3, SplitEvery: 2,
		Finished: func(id int, tokens []int32) { r.tokens[id] = tokens },
		Logits: func(id, position int, logits []cuda.Half) {
			if r.logits[id] == nil {
				r.logits[id] = map[int][]cuda.Half{}
			}
			r.logits[id][position] = append([]cuda.Half(nil), logits...)
		},
		Selects: c.selects,
		Attended: func(id, position, layer, head, blocks int) {
			r.used[place{id, position, layer, head}] = blocks
		},
		Chosen: func(id, position, layer, head int, blocks []int32) {
			for _, b := range blocks {
				r.chosen[place{id, position, layer, head}] = append(
					r.chosen[place{id, position, layer, head}], int(b))
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	modelled, err := modelledDevice(&c.spec, &model)
	if err != nil {
		t.Fatal(err)
	}
	cfg := c.server(&model)
	cfg.Addressed, cfg.DeviceSelects, cfg.Device = true, c.selects,
		&witness{modelClock: modelClock{Real: device, Model: modelled}, run: r}
	if c.selects {
		cfg.Library = nil
	}
	if c.record != nil {
		cfg.RecordTo = dsa.NewRecordingWriter(c.record, cfg.SelectionShape())
	}
	server, err := sim.NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	steps := &counted{device: device, each: c.each}
	if r.metrics, err = server.Run(context.Background(), c.workload(), steps); err != nil {
		t.Fatal(err)
	}
	// The device learns of finished requests with the next step; this one has none.
	if err := device.Begin(&sim.Step{Index: int64(len(steps.steps)),
		Dropped: server.Dropped()}); err != nil {
		t.Fatal(err)
	}
	r.steps, r.counters = steps.steps, steps.counters
	if c.record != nil {
		if err := cfg.RecordTo.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := device.Counters(); got.Loaded != steps.loaded || got.Saved != steps.saved ||
		got.Steps != int64(len(steps.steps)) {
		t.Errorf(
			"the device loaded %d and saved %d blocks in %d steps, the server counts %d and %d in %d",
			got.Loaded, got.Saved, got.Steps, steps.loaded, steps.saved, len(steps.steps))
	}
	if err := device.Close(); err != nil {
		t.Fatal(err)
	}
	return r
}

// tiny is a model of 16 bits with the given shape.
func tiny(m llm.Model) weights.Config {
	m.Name, m.MaxContext, m.Tokenizer, m.WeightBytesEach, m.KVBytesEach = "tiny", 400, "llama2", 2, 2
	return weights.Config{Model: m}
}

// flatScores belong to heads that are flatter than a model's, so that progressive attention goes on
// for several rounds and ends in different ones even in the short contexts of these tests.
func flatScores() score.Params {
	p := score.Default
	p.Skew, p.SkewLayers, p.SkewHeads, p.SkewTokens, p.Sink, p.Error = 1.5, 0.25, 0.2, 0.2, 4, 0.4
	return p
}

// server is the server of a scenario; it lacks a device.
func (c *scenario) server(m *llm.Model) sim.Config {
	cfg := sim.Config{
		Spec: c.spec,
		Model: sim.Model{Layers: m.Layers, KVHeads: m.KVHeads, TokenValues: m.TokenValues(),
			MaxContext: m.MaxContext},
		Geometry: m.Geometry(c.spec.BlockTokens), HBMBytes: c.kvBytes, Seed: 3, Prefill: c.mix(),
	}
	if c.spec.Sparse() {
		cfg.Library = library(&c.spec)
	}
	return cfg
}

func library(s *sim.Spec) *dsa.Library {
	policy, named, err := s.Policy(1)
	if err != nil {
		panic(err)
	}
	return dsa.NewLibrary(score.New(flatScores(), 1), policy,
		dsa.Setting{Digest: named.Digest, Sinks: s.Selection.SinkBlocks,
			Window: s.Selection.RecentBlocks, Queries: 2}, 2)
}

// modelledDevice prices steps with a host that is fast, because the requests of the cases arrive so
// that they meet in its batches.
func modelledDevice(s *sim.Spec, m *llm.Model) (*cost.Device, error) {
	gpu, err := hw.Load("h200", "sparseserve-live", nil)
	if err != nil {
		return nil, err
	}
	host := &gpu.Host
	host.Step.Value, host.Request.Value, host.LayerSync.Value = 22.21, 1.779, 17.08
	host.LayerRate.Value = 1.473
	gpu.LayerOverhead = slices.Clone(gpu.LayerOverhead)
	for i, us := range []float64{3.077, 6.776, 18.54, 10.3, 19.54, 17.45, 17.39} {
		gpu.LayerOverhead[i].Value = us
	}
	opts := cost.DeviceOptions{}
	if s.Offload.On {
		opts = cost.DeviceOptions{LoadEngine: s.Offload.Load, SaveEngine: s.Offload.Save, Offload: true,
			SaveBufferBytes: int64(s.Offload.SaveBufferMiB * (1 << 20))}
	}
	opts.Pipelined = s.Progressive() && s.Selection.Pipelined
	return cost.NewDevice(gpu, m, opts)
}

// counted keeps and sums up what the server records.
type counted struct {
	device        *live.Device // nil: none that counts
	steps         []metrics.Step
	counters      []live.Counters // of the device, after each step
	loaded, saved int64
	each          func() // nil: nothing
}

func (c *counted) Request(*metrics.Request) error { return nil }
func (c *counted) Gap(des.Time)                   {}
func (c *counted) Step(r *metrics.Step) error {
	c.steps = append(c.steps, *r)
	if c.device != nil {
		c.counters = append(c.counters, c.device.Counters())
	}
	if c.each != nil {
		c.each()
	}
	c.loaded += r.Loaded
	c.saved += r.Saved
	return nil
}

// witness notes which blocks each decode attends to.
type witness struct {
	modelClock
	run *run
}

func (w *witness) Begin(s *sim.Step) error {
	w.run.rows = append(w.run.rows[:0], s.Rows...)
	last := slices.MaxFunc(s.Rows, func(a, b sim.Row) int { return a.LayerTo - b.LayerTo })
	for layer := range last.LayerTo {
		if !slices.ContainsFunc(s.Rows, func(r sim.Row) bool { return r.In(layer) }) {
			w.run.skipped++
		}
	}
	for i := range s.Rows {
		for layer := range w.run.shape.Layers {
			if row, at := &s.Rows[i], [2]int{s.Rows[i].ID, layer}; !row.Decode && row.In(layer) {
				w.run.prefilled[at] = append(w.run.prefilled[at], [2]int{row.From, row.To})
			}
		}
	}
	return w.modelClock.Begin(s)
}

func (w *witness) Compute(layer int, work *sim.Work) error {
	heads := w.run.shape.KVHeads
	for i := 0; i < work.Decodes && work.Lists != nil; i++ {
		for h := range heads {
			unit, l := i*heads+h, work.Lists
			var blocks []int
			for _, b := range l.Block[unit*l.Stride:][:l.Count[unit]] {
				blocks = append(blocks, int(b))
			}
			w.run.lists[place{w.run.rows[i].ID, w.run.rows[i].From, layer, h}] = blocks
		}
	}
	return w.modelClock.Compute(layer, work)
}
