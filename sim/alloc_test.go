package sim_test

import (
	"testing"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/sim/score"
)

// quiet is a recorder that keeps nothing.
type quiet struct{}

func (quiet) Request(*metrics.Request) error { return nil }
func (quiet) Gap(des.Time)                   {}
func (quiet) Step(*metrics.Step) error       { return nil }

// decoding returns a server on the modelled A100 in which eight long requests are in the midst of
// their decodes: SparseServe, changed if at all.
func decoding(t testing.TB, eviction string, change func(*sim.Spec)) *sim.Server {
	model, err := llm.Load("lwm-7b")
	if err != nil {
		t.Fatal(err)
	}
	gpu, err := hw.Load("a100-40gb", "vllm-0.5", nil)
	if err != nil {
		t.Fatal(err)
	}
	spec := sim.Spec{
		Selection: sim.SelectionSpec{On: true, Policy: "arkvale", BudgetTokens: 2048, SinkBlocks: 2,
			RecentBlocks: 2}, BlockTokens: 32,
		Offload: sim.OffloadSpec{On: true, Load: "flash", Save: "flash", Eviction: eviction,
			Pool: "unified", SaveBufferMiB: 256, BatchControl: true, WorkingSetSteps: 12}, DRAMGiB: 224,
		Scheduler: "vllm", MaxRequests: 256, MaxTokens: 2048,
		Watermark: 0.01, Prefill: sim.PrefillSpec{Split: "layer", ChunkTokens: 2048},
		Simulation: sim.SimulationSpec{Heads: "sampled", Groups: 16},
	}
	if change != nil {
		change(&spec)
	}
	options := cost.DeviceOptions{}
	if spec.Offload.On {
		options = cost.DeviceOptions{LoadEngine: "flash", SaveEngine: "flash", Offload: true,
			SaveBufferBytes: 256 << 20}
	}
	device, err := cost.NewDevice(gpu, &model, options)
	if err != nil {
		t.Fatal(err)
	}
	policy, named, err := spec.Policy(2)
	if err != nil {
		t.Fatal(err)
	}
	setting := dsa.Setting{Digest: named.Digest, Sinks: 2, Window: 2, Queries: 2,
		Apart: spec.Selection.Per == sim.PerQueryHead}
	s, err := sim.NewServer(sim.Config{
		Spec: spec,
		Model: sim.Model{Layers: model.Layers, KVHeads: model.KVHeads, Queries: 2,
			TokenValues: model.TokenValues(),
			MaxContext:  model.MaxContext},
		Geometry: model.Geometry(32), HBMBytes: 20 << 30, Device: device,
		Library: dsa.NewLibrary(score.New(score.Default, 1), policy, setting, 2),
	})
	if err != nil {
		t.Fatal(err)
	}
	var w list
	for range 8 {
		w.arrivals = append(w.arrivals, sim.Arrival{Prompt: 10000, Output: 4000})
	}
	if err := s.Begin(&w, quiet{}); err != nil {
		t.Fatal(err)
	}
	for range 1500 { // prefills end, scratch grows to its size
		if _, err := s.Advance(); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// A step in steady state allocates nothing: event queue, scheduling, selection,
// cache access, modelled device and metrics together. What remains is amortised
// growth (a request's clock) and a new context length's streams, once in a few
// hundred steps.
func TestStepAllocatesNothingInSteadyState(t *testing.T) {
	for _, eviction := range kv.EvictionNames() {
		for _, per := range []string{sim.PerKVHead, sim.PerQueryHead} {
			if eviction == kv.ByScore && per == sim.PerQueryHead {
				continue
			}
			s := decoding(t, eviction, func(s *sim.Spec) { s.Selection.Per = per })
			if n := testing.AllocsPerRun(300, func() {
				if _, err := s.Advance(); err != nil {
					t.Fatal(err)
				}
			}); n != 0 {
				t.Errorf("%s, selections per %s: %v allocations a step", eviction, per, n)
			}
		}
	}
}

// Nor does one that shares prefixes, in HBM or with offloading in DRAM.
func TestStepWithPrefixesAllocatesNothing(t *testing.T) {
	for _, offload := range []bool{false, true} {
		for _, kind := range sim.PrefixCaches() {
			if offload && kind == sim.PrefixTree {
				continue
			}
			s := decoding(t, kv.LRU, func(s *sim.Spec) {
				s.PrefixCache.Mode = kind
				if !offload {
					s.Offload.On, s.Selection.On, s.Prefill.Split, s.Offload.BatchControl = false, false,
						"chunked", false
				}
			})
			if n := testing.AllocsPerRun(300, func() {
				if _, err := s.Advance(); err != nil {
					t.Fatal(err)
				}
			}); n != 0 {
				t.Errorf("offload %v, prefix cache %s: %v allocations a step", offload, kind, n)
			}
		}
	}
}

func BenchmarkStep(b *testing.B) {
	s := decoding(b, kv.LRU, nil)
	b.ReportAllocs()
	for b.Loop() {
		if more, err := s.Advance(); err != nil {
			b.Fatal(err)
		} else if !more {
			s = decoding(b, kv.LRU, nil)
		}
	}
}
