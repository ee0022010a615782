package validate

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/calibrate"
	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// Live runs whose steps take what a host of known figures takes give these figures.
func TestFitHostFindsTheHost(t *testing.T) {
	t.Chdir(filepath.Join("..", "..")) // runs name their engine from there
	kept, err := askedRuns(filepath.Join("experiments", "validation", "longbench-h200"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := hw.Load("h200", "sparseserve-live", nil)
	if err != nil {
		t.Fatal(err)
	}
	us := func(v float64) hw.Figure {
		return hw.Figure{Value: v, Unit: "us", From: hw.Measured, Source: "a test"}
	}
	host := *p
	host.Host.Step, host.Host.Request, host.Host.LayerSync = us(40), us(3), us(25)
	host.Host.LayerRate = hw.Figure{Value: 2, Unit: "GB/s", From: hw.Measured, Source: "a test"}
	host.LayerOverhead = slices.Clone(p.LayerOverhead)
	for i := range host.LayerOverhead {
		if r := &host.LayerOverhead[i]; r.Lookup == "" && r.Attention == hw.OverheadSparse && !r.Chunk {
			r.Figure = us(9)
		}
	}
	var runs []calibrate.HostRun
	for i := range kept[:8] {
		r := &kept[i]
		if r.Options.GPULookup {
			continue
		}
		device, err := cost.NewDevice(&host, r.Model, r.Options)
		if err != nil {
			t.Fatal(err)
		}
		steps := r.Steps[:min(300, len(r.Steps))]
		times, err := live.Price(steps, device)
		if err != nil {
			t.Fatal(err)
		}
		now := des.Time(0)
		for j := range steps {
			steps[j].Step.Start, steps[j].Timing = now, times[j]
			now += times[j].Elapsed
		}
		runs = append(runs, calibrate.HostRun{Model: r.Model, Options: r.Options, Steps: steps})
	}
	got, err := calibrate.FitHost(p, runs, "a test")
	if err != nil {
		t.Fatal(err)
	}
	near := func(name string, got, want float64) {
		if math.Abs(got/want-1) > 0.1 {
			t.Errorf("%s: %.4g, want %.4g", name, got, want)
		}
	}
	near("host.step", got.Host.Step.SI(), 40e-6)
	near("host.request", got.Host.Request.SI(), 3e-6)
	near("host.layer_sync", got.Host.LayerSync.SI(), 25e-6)
	near("host.layer_rate", got.Host.LayerRate.SI(), 2e9)
	for _, r := range got.LayerOverhead {
		if r.Lookup == "" && r.Attention == hw.OverheadSparse && !r.Chunk {
			near("layer_overhead", r.SI(), 9e-6)
		}
	}
	for i := range runs[0].Steps {
		runs[0].Steps[i].Timing.Phases = metrics.Phases{Unsplit: 1}
	}
	if _, err := calibrate.FitHost(p, runs[:1], "a test"); err == nil {
		t.Error("a host of steps that were not split")
	}
}

// The kept live runs give the built-in engine's figures. They may differ by 1 %, because renewing
// them changes every result of the engine.
func TestFitHostGivesTheBuiltInEngine(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	got, err := FitHost(filepath.Join("experiments", "validation", "longbench-h200"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := hw.LoadEngine("sparseserve-live")
	if err != nil {
		t.Fatal(err)
	}
	near := func(name string, got, want hw.Figure) {
		if math.Abs(got.SI()/want.SI()-1) > 0.01 {
			t.Errorf("%s: %.4g, the built-in engine has %.4g", name, got.SI(), want.SI())
		}
	}
	near("host.step", got.Host.Step, want.Host.Step)
	near("host.request", got.Host.Request, want.Host.Request)
	near("host.layer_sync", got.Host.LayerSync, want.Host.LayerSync)
	near("host.layer_rate", got.Host.LayerRate, want.Host.LayerRate)
	for i, r := range want.LayerOverhead {
		near("layer_overhead "+r.Attention, got.LayerOverhead[i].Figure, r.Figure)
	}
}
