package live_test

import (
	"io"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/emulator"
	"github.com/sparseserve/sparseserve/cuda/reference"
	"github.com/sparseserve/sparseserve/cuda/weights"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/sim/pattern"
	"github.com/sparseserve/sparseserve/sim/prefix"
)

// Whatever the system, every emitted token's logits equal the float64 model's that reads the same
// blocks: dense and sparse attention, plain, chunked and layer-segmented prefill, with offloading
// and without, after any eviction and preemption.
func TestLogitsMatchTheReference(t *testing.T) {
	for name, c := range chosen() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Operations run as late as the stream's order allows, which shows where a wait is
			// missing.
			m := emulator.New(emulator.Config{Late: true, Seed: uint64(len(name))})
			defer m.Close()
			c.run(t, m).check(t)
			if d, h := m.Held(); d != 0 || h != 0 {
				t.Errorf("%d bytes of device memory and %d of pinned memory are left", d, h)
			}
		})
	}
}

// scenario is one system on one tiny model.
type scenario struct {
	shape    weights.Config
	spec     sim.Spec
	kvBytes  int64
	evicts   bool
	preempts bool
	resumes  bool              // chunked prefills load their prefix again
	selects  bool              // the model selects
	record   io.Writer         // of selections; nil: none
	patterns [][]pattern.Head  // of prefill; nil: dense
	lengths  []length          // of the requests; nil: mixed
	content  []*prefix.Content // of the requests, which are further apart; nil: not known
	arrive   []des.Time        // when the requests arrive; nil: each some time after the one before
	drawn    bool              // lines of prefill are where the cost model assumes them
	allKeys  bool              // prefills attend to all: their budgets cover the context
	each     func()            // after each step; nil: nothing

}

// chosen are all cases, or with -short, under checkers that make each many times slower, one of
// each way that goroutines meet.
func chosen() map[string]*scenario {
	all := cases()
	if !testing.Short() {
		return all
	}
	some := map[string]*scenario{}
	for _, name := range []string{"mha/dense", "mha/offload, memcpy", "gqa/offload, memcpy and gpu",
		"gqa/select: offload, small", "mha/layer", "gqa/psa, small",
		"sparse prefill/layer-chunked, one of each"} {
		some[name] = all[name]
	}
	return some
}

func cases() map[string]*scenario {
	mha := tiny(llm.Model{Layers: 2, Hidden: 72, QHeads: 2, KVHeads: 2, HeadDim: 64, FFN: 40,
		Vocab: 61})
	gqa := tiny(llm.Model{Layers: 3, Hidden: 64, QHeads: 4, KVHeads: 1, HeadDim: 64, FFN: 48,
		Vocab: 53})
	base := sim.Spec{
		Selection: sim.SelectionSpec{Policy: "arkvale", BudgetTokens: 64}, BlockTokens: 16,
		Offload: sim.OffloadSpec{Load: "flash", Save: "flash", Eviction: "lru", Pool: "unified",
			SaveBufferMiB: 1, WorkingSetSteps: 4},
		Utilisation: 0.9, DRAMGiB: 0.05,
		Scheduler: "vllm", MaxRequests: 8, MaxTokens: 48, Watermark: 0.01,
		Prefill:    sim.PrefillSpec{Split: "chunked", ChunkTokens: 48, OverLength: "truncate"},
		Simulation: sim.SimulationSpec{Heads: "full"},
	}
	sparse := base
	sparse.Selection.On, sparse.Selection.SinkBlocks, sparse.Selection.RecentBlocks = true, 1, 1
	offload := sparse
	offload.Offload.On = true
	with := func(s sim.Spec, change func(*sim.Spec)) sim.Spec { change(&s); return s }
	all := map[string]*scenario{}
	for model, shape := range map[string]weights.Config{"mha": mha, "gqa": gqa} {
		block := int64(4 * 16 * shape.HeadDim)
		group := int64(shape.Layers * shape.KVHeads)
		half := 60 * block * group // of all requests about a half
		add := func(name string, kv int64, evicts bool, s sim.Spec) {
			all[model+"/"+name] = &scenario{shape: shape, spec: s, kvBytes: kv, evicts: evicts}
		}
		add("dense", half, false, base)
		add("dense, short of memory", 14*block*group, false, base)
		all[model+"/dense, short of memory"].preempts = true
		add("plain prefill", half, false,
			with(base, func(s *sim.Spec) { s.Prefill.Split, s.MaxTokens = "plain", 200 }))
		add("sparse", half, false, sparse)
		add("sparse with a dense layer", half, false,
			with(sparse, func(s *sim.Spec) { s.Selection.DenseLayers = 1 }))
		add("offload", half, false, offload)
		small := 20 * block * group
		add("offload, small", small, true, offload)
		add("offload, short of DRAM", small, false,
			with(offload, func(s *sim.Spec) { s.DRAMGiB = float64(14*block*group) / (1 << 30) }))
		all[model+"/offload, short of DRAM"].preempts = true
		// Prefills have steps of their own, in which they evict what decodes.
		add("offload, small, plain prefill", small, true,
			with(offload, func(s *sim.Spec) { s.Prefill.Split, s.MaxTokens = "plain", 200 }))
		add("offload, small, with a dense layer", small, true,
			with(offload, func(s *sim.Spec) { s.Selection.DenseLayers = 1 }))
		add("offload, memcpy", small, true,
			with(offload, func(s *sim.Spec) { s.Offload.Load, s.Offload.Save = "memcpy", "memcpy" }))
		add("offload, memcpy and gpu", small, true,
			with(offload, func(s *sim.Spec) { s.Offload.Load, s.Offload.Save = "memcpy", "gpu" }))
		add("offload, dense", half, false, with(offload, func(s *sim.Spec) { s.Selection.On = false }))
		add("offload, fifo", small, true,
			with(offload, func(s *sim.Spec) { s.Offload.Eviction = "fifo" }))
		add("offload, control", small, false,
			with(offload, func(s *sim.Spec) { s.Offload.BatchControl = true }))
		add("layer", 2*small, false, with(offload, func(s *sim.Spec) { s.Prefill.Split = "layer" }))
		add("layer, several a step", 2*small, false,
			with(offload, func(s *sim.Spec) {
				s.Prefill.Split, s.Prefill.MaxInject,
					s.Offload.BatchControl = "layer", 400, true
			}))
		add("layer-chunked", 2*small, false,
			with(offload, func(s *sim.Spec) {
				s.Prefill.Split, s.Prefill.MaxInject = "layer-chunked",
					40
			}))
		for _, of := range []string{"sparse", "sparse with a dense layer", "offload", "offload, small",
			"offload, fifo", "layer", "layer, several a step", "layer-chunked"} {
			c := *all[model+"/"+of]
			c.selects = true
			all[model+"/select: "+of] = &c
		}
		psa := with(offload, func(s *sim.Spec) {
			s.Selection.Policy, s.Selection.Stop, s.Selection.Epsilon, s.Selection.Microbatch,
				s.Selection.Pipelined, s.Selection.SinkBlocks = "psa",
				sim.PSAStopHead, 0.8, 2, true, 0
		})
		add("psa in HBM", half, false, with(psa, func(s *sim.Spec) { s.Offload.On = false }))
		add("psa", half, false, psa)
		add("psa, small", small, true, psa)
		together := func(s *sim.Spec) { s.Selection.Stop = "layer" }
		add("psa, heads together in HBM", half, false,
			with(psa, func(s *sim.Spec) { together(s); s.Offload.On = false }))
		add("psa, heads together", half, false, with(psa, together))
		add("psa, heads together, small", small, true, with(psa, together))
		add("psa, heads together in turns", small, true,
			with(psa, func(s *sim.Spec) { together(s); s.Selection.Pipelined = false }))
		add("psa, in turns", small, true,
			with(psa, func(s *sim.Spec) { s.Selection.Pipelined = false }))
		add("psa, memcpy", small, true,
			with(psa, func(s *sim.Spec) { s.Offload.Load, s.Offload.Save = "memcpy", "memcpy" }))
		add("psa, memcpy in turns", small, true,
			with(psa, func(s *sim.Spec) {
				s.Offload.Load, s.Offload.Save, s.Selection.Pipelined = "memcpy",
					"memcpy", false
			}))
		add("psa, memcpy and gpu", small, true,
			with(psa, func(s *sim.Spec) {
				s.Offload.Load, s.Offload.Save, s.Selection.Microbatch =
					"memcpy", "gpu", 1
			}))
		add("psa, sinks and a dense layer", small, true,
			with(psa, func(s *sim.Spec) {
				s.Selection.SinkBlocks, s.Selection.DenseLayers,
					s.Selection.Microbatch = 1, 1, 3
			}))
		add("psa, one microbatch", small, true,
			with(psa, func(s *sim.Spec) { s.Selection.Microbatch = 16 }))
		setBack := with(psa, func(s *sim.Spec) {
			s.Scheduler, s.Prefill.ChunkTokens,
				s.MaxTokens = "vllm-v1", 32, 32
		})
		add("psa, prefills set back", 15*block*group, true, setBack)
		add("psa, prefills set back in turns", 15*block*group, true,
			with(setBack, func(s *sim.Spec) { s.Selection.Pipelined = false }))
		all[model+"/psa, prefills set back"].resumes,
			all[model+"/psa, prefills set back in turns"].resumes = true, true
		add("psa, layer", 2*small, false, with(psa, func(s *sim.Spec) { s.Prefill.Split = "layer" }))
		add("psa, layer in turns", 2*small, false,
			with(psa, func(s *sim.Spec) {
				s.Prefill.Split, s.Prefill.MaxInject, s.Offload.BatchControl, s.Selection.Pipelined =
					"layer", 400,
					true, false
			}))
		add("psa, everything", half, false,
			with(psa, func(s *sim.Spec) { s.Selection.Epsilon = 1 - 1e-15 }))
		add("psa, everything in HBM", half, false,
			with(psa, func(s *sim.Spec) { s.Selection.Epsilon, s.Offload.On = 1-1e-15, false }))
		if group%int64(shape.Layers) == 0 {
			add("psa, per-layer pools", 2*small, false,
				with(psa, func(s *sim.Spec) { s.Offload.Pool = "per-layer" }))
			add("per-layer pools", 2*small, false,
				with(offload, func(s *sim.Spec) { s.Offload.Pool = "per-layer" }))
		}
		gpu := func(s *sim.Spec) { s.Offload.Lookup = sim.LookupGPU }
		for _, of := range []string{
			"offload", "offload, small", "offload, fifo", "offload, control", "layer",
			"layer, several a step", "layer-chunked",
			"psa", "psa, small", "psa, heads together, small", "psa, in turns",
			"psa, sinks and a dense layer", "psa, one microbatch",
			"psa, prefills set back", "psa, prefills set back in turns", "psa, layer", "psa, layer in turns",
			"psa, everything",
			"offload, short of DRAM", "offload, small, plain prefill", "offload, small, with a dense layer",
			"psa, per-layer pools", "per-layer pools",
		} {
			c := *all[model+"/"+of]
			c.spec = with(c.spec, gpu)
			all[model+"/gpu lookup: "+of] = &c
		}
	}
	addPatterns(all, base)
	addHits(all)
	return all
}

// check compares every emitted token with the reference, which is given the same tokens.
func (r *run) check(t *testing.T) {
	t.Helper()
	if want := len(r.workload().lengths); len(r.tokens) != want {
		t.Fatalf("%d requests finished, want %d", len(r.tokens), want)
	}
	sum := r.metrics.Summary()
	if r.evicts && sum.BlocksLoadedPerStep == 0 {
		t.Error("nothing was loaded; the case is meant to evict")
	}
	if r.preempts && sum.Preempted == 0 {
		t.Error("nothing was preempted; the case is meant to")
	}
	if r.resumes && !slices.ContainsFunc(r.steps, func(s metrics.Step) bool {
		return s.Resumed > 0 &&
			(!r.spec.Progressive() || s.Rounds > 0)
	}) {
		t.Error("no prefill was set back and resumed together with decodes; the case is meant to")
	}
	if r.selects {
		r.attended(t)
	}
	r.progressed(t)
	judge := newJudge(r)
	for id, tokens := range r.tokens {
		ids := make([]int, len(tokens))
		for i, x := range tokens {
			ids[i] = int(x)
		}
		cache := r.model.NewCache()
		selector := reference.Selector{
			BlockTokens: r.spec.BlockTokens,
			Blocks: func(position, layer, head int) []int {
				return r.lists[place{id, position, layer, head}]
			},
		}
		queries := map[place][]float64{} // of a position's query heads, by KV head
		selector.Watch = func(position, layer, head int, query, keys []float64) {
			judge.see(t, place{id, position, layer, head}, query, keys)
			if r.patterns != nil {
				queries[place{id, position, layer, head}] = slices.Clone(query)
			}
		}
		if !r.allKeys { // else the reference is dense
			selector.Keys = r.keys(id)
		}
		r.aShapes(id)
		logits := r.model.Extend(cache, ids[:len(ids)-1], selector)
		r.judgePrefill(t, id, cache, queries)
		seen := 0
		for position, got := range r.logits[id] {
			seen++
			if err := near(got, logits[position]); err != nil {
				t.Errorf("request %d, position %d: %v", id, position, err)
				return
			}
			if want := reference.Argmax(cuda.Floats(got)); want != ids[position+1] && r.content == nil {
				t.Errorf("request %d, position %d: token %d follows, the logits say %d", id, position,
					ids[position+1], want)
			}
		}
		if seen == 0 {
			t.Errorf("request %d emitted nothing", id)
		}
	}
	judge.check(t)
	r.checkDensity(t)
}
