package sim_test

import (
	"testing"
	"time"

	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/sim/score"
)

// stopwatch is a device that does nothing but to measure what the server takes between its calls,
// as a real device's host must.
type stopwatch struct {
	left          time.Time
	lookup, lists time.Duration
	decodes       int
	steps         int64
}

func (w *stopwatch) Begin(s *sim.Step) error {
	w.decodes = len(s.Rows)
	w.left = time.Now()
	return nil
}
func (w *stopwatch) Score(int, *sim.Work) error {
	w.lookup += time.Since(w.left)
	w.left = time.Now()
	return nil
}
func (w *stopwatch) Move(*kv.Moves) error {
	w.lookup += time.Since(w.left)
	w.left = time.Now()
	return nil
}
func (w *stopwatch) Compute(int, *sim.Work) error {
	w.lists += time.Since(w.left)
	w.left = time.Now()
	return nil
}
func (w *stopwatch) Finish() (metrics.Timing, error) {
	w.steps++
	return metrics.Timing{Elapsed: 20 * des.Millisecond,
		Phases:     metrics.Phases{Unsplit: 20 * des.Millisecond},
		SavedSteps: w.steps}, nil
}
func (w *stopwatch) Drain() (des.Time, error) { return 0, nil }

// lastStep keeps the last step's record.
type lastStep struct {
	quiet
	rec metrics.Step
}

func (l *lastStep) Step(r *metrics.Step) error { l.rec = *r; return nil }

// BenchmarkBookkeeping is the host's share of a decode step of LWM-7B's shape: 1,024 (layer, KV
// head) groups, 64 blocks each, 16 requests of 10,000 tokens and more, with HBM for 1.1 times what
// they select in one step.
func BenchmarkBookkeeping(b *testing.B) {
	model, err := llm.Load("lwm-7b")
	if err != nil {
		b.Fatal(err)
	}
	spec := sim.Spec{
		Selection: sim.SelectionSpec{On: true, Policy: "arkvale", BudgetTokens: 2048, SinkBlocks: 2,
			RecentBlocks: 2}, BlockTokens: 32,
		Offload: sim.OffloadSpec{On: true, Load: "flash", Save: "flash", Eviction: "lru",
			Pool: "unified", SaveBufferMiB: 256, WorkingSetSteps: 12}, DRAMGiB: 224, Scheduler: "vllm",
		MaxRequests: 16, MaxTokens: 2048,
		Watermark: 0.01, Prefill: sim.PrefillSpec{Split: "layer", ChunkTokens: 2048},
		Simulation: sim.SimulationSpec{Heads: "full"},
	}
	geo := model.Geometry(32)
	device := &stopwatch{}
	s, err := sim.NewServer(sim.Config{
		Spec: spec,
		Model: sim.Model{Layers: model.Layers, KVHeads: model.KVHeads, TokenValues: model.TokenValues(),
			MaxContext: model.MaxContext},
		Geometry: geo, HBMBytes: 24 << 30, Device: device, Addressed: true,
		Library: dsa.NewLibrary(score.New(score.Default, 1),
			dsa.TopK{K: sim.Candidates(&spec)}, dsa.Setting{Digest: dsa.CuboidMean, Sinks: 2, Window: 2}, 8),
	})
	if err != nil {
		b.Fatal(err)
	}
	var w list
	for range 16 {
		w.arrivals = append(w.arrivals, sim.Arrival{Prompt: 10000, Output: 8000})
	}
	rec := &lastStep{}
	if err := s.Begin(&w, rec); err != nil {
		b.Fatal(err)
	}
	for device.decodes < 16 {
		if _, err := s.Advance(); err != nil {
			b.Fatal(err)
		}
	}
	for range 100 {
		if _, err := s.Advance(); err != nil {
			b.Fatal(err)
		}
	}
	device.lookup, device.lists, device.steps = 0, 0, 0
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Advance(); err != nil {
			b.Fatal(err)
		}
		if device.decodes < 16 {
			b.Fatal("requests have finished")
		}
	}
	// an event in thirty is no step
	ms := func(d time.Duration) float64 { return d.Seconds() * 1e3 / float64(device.steps) }
	b.ReportMetric(float64(rec.rec.Loaded), "loaded/step")
	b.ReportMetric(float64(rec.rec.Selected), "selected/step")
	b.ReportMetric(ms(device.lookup), "lookup-ms/step")
	b.ReportMetric(ms(device.lists), "lists-ms/step")
	b.ReportMetric(ms(device.lookup+device.lists), "ms/step")
}
