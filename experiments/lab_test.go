package experiments

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"sparseserve/hw"
	"sparseserve/sim"
	"sparseserve/sim/dsa"
)

// countingLab is a lab whose runs do nothing but count.
func countingLab(t *testing.T) (*Lab, *atomic.Int64) {
	var runs atomic.Int64
	return &Lab{Dir: t.TempDir(), Version: "1", Run: func(_ context.Context, p Point, _ Sink) (sim.Summary, error) {
		runs.Add(1)
		return sim.Summary{Completed: 1, ThroughputTokS: p.Workload.OutputScale}, nil
	}}, &runs
}

func TestLabKeepsRuns(t *testing.T) {
	lab, runs := countingLab(t)
	do := func(want int64, names ...string) {
		t.Helper()
		runs.Store(0)
		if err := lab.Do(t.Context(), names...); err != nil {
			t.Fatal(err)
		}
		if got := runs.Load(); got != want {
			t.Errorf("%v: %d runs, want %d", names, got, want)
		}
	}
	do(40, "fig16a") // 2 plans, 4 rates, 5 seeds
	do(0, "fig16a")
	do(35, "fig15") // 50, of which SparseServe at 0.2, 0.25 and 0.3 is in Fig. 16a
	kept, err := filepath.Glob(filepath.Join(lab.Dir, runsFolder, "*.json"))
	if err != nil || len(kept) != 75 {
		t.Fatalf("%d kept runs (%v), want 75", len(kept), err)
	}
	if err := os.WriteFile(kept[0], []byte(`{"name":"spars`), 0o644); err != nil {
		t.Fatal(err)
	}
	do(1, "fig15", "fig16a") // what a corrupted file held is run again
}

func TestLabForgetsOtherVersions(t *testing.T) {
	lab, runs := countingLab(t)
	for i, version := range []string{"1", "1", "2"} {
		lab.Version = version
		if err := lab.Do(t.Context(), "fig16b"); err != nil {
			t.Fatal(err)
		}
		if want := []int64{15, 15, 30}[i]; runs.Load() != want {
			t.Errorf("version %s: %d runs so far, want %d", version, runs.Load(), want)
		}
	}
}

func TestLabScale(t *testing.T) {
	lab, _ := countingLab(t)
	lab.Scale = 0.5
	if err := lab.Do(t.Context(), "fig10b", "fig14b"); err != nil {
		t.Fatal(err)
	}
	r := newLabResults(lab.Dir)
	every := func(*LabRun) bool { return true }
	if scale, err := r.mean("fig10b", every, tokenThroughput); scale != 4 || err != nil {
		t.Errorf("Llama3-8B's outputs at half: scale %g (%v), want 4", scale, err)
	}
	if scale, err := r.mean("fig14b", every, tokenThroughput); math.Abs(scale-0.001) > 1e-12 || err != nil {
		t.Errorf("prefill alone: scale %g (%v), want 0.001", scale, err)
	}
}

func TestLabErrors(t *testing.T) {
	lab, _ := countingLab(t)
	if err := lab.Do(t.Context(), "fig3"); err == nil || !strings.Contains(err.Error(), "no such experiment of the paper") {
		t.Errorf("unknown experiment: error is %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := lab.Do(ctx, "fig15"); err == nil {
		t.Error("no error when cancelled")
	}
	if _, err := os.Stat(filepath.Join(lab.Dir, "fig15", summaryFile)); err == nil {
		t.Error("cancelled, but a result was written")
	}
}

// Whatever the goodput, the search ends below it, within the width.
func TestGoodputSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := GoodputSearch{
			Start: rapid.Float64Range(0.01, 2).Draw(t, "start"),
			Width: rapid.Float64Range(0.01, 0.5).Draw(t, "width"),
			Max:   1000,
		}
		limit := math.Exp(rapid.Float64Range(math.Log(0.003), math.Log(100)).Draw(t, "log of the goodput"))
		tries := 0
		got, err := g.largest(func(rate float64) (bool, error) { tries++; return rate <= limit, nil })
		if err != nil || got > limit || got < limit/(1+g.Width)-0.002*limit {
			t.Fatalf("goodput %g: found %g (%v)", limit, got, err)
		}
		if tries > 40 {
			t.Fatalf("%d tries", tries)
		}
	})
	g := GoodputSearch{Start: 0.1, Width: 0.05, Max: 3}
	if got, _ := g.largest(func(float64) (bool, error) { return true, nil }); got != 3 {
		t.Errorf("a service level that is always kept: %g, want the cap of 3", got)
	}
	if got, _ := g.largest(func(float64) (bool, error) { return false, nil }); got != 0 {
		t.Errorf("a service level that is never kept: %g, want 0", got)
	}
}

// Overlap by its definition: the union of the last w steps' blocks.
func TestStreamOverlap(t *testing.T) {
	steps := [][]float32{{3, 2, 1, 0}, {3, 1, 2, 0}, {0, 1, 2, 3}, {3, 2, 1, 0}, {0, 3, 2, 1}, {1, 0, 3, 2}}
	s := dsa.Record(4, len(steps), dsa.TopK{K: 2}, func(t int) []float32 { return steps[t] })
	windows := []int{1, 2, 3}
	const phase, length, fixed = 2, 5, 1
	got := streamOverlap(s, phase, length, fixed, windows)
	for i, w := range windows {
		hits, total := 0, 0
		for n := range length {
			at := phase + 1 + windows[len(windows)-1] + n
			seen := map[uint16]bool{}
			for back := 1; back <= w; back++ {
				for _, b := range s.At((at - back) % s.Steps) {
					seen[b] = true
				}
			}
			total, hits = total+2+fixed, hits+fixed
			for _, b := range s.At(at % s.Steps) {
				if seen[b] {
					hits++
				}
			}
		}
		if want := float64(hits) / float64(total); got[i] != want {
			t.Errorf("window %d: overlap %g, want %g", w, got[i], want)
		}
	}
}

// No engine is faster than the link, and no larger block is slower to move.
func TestTransfersArePhysical(t *testing.T) {
	lab, _ := countingLab(t)
	if err := lab.Do(t.Context(), "fig04"); err != nil {
		t.Fatal(err)
	}
	gpu, err := hw.LoadProfile("a100-40gb")
	if err != nil {
		t.Fatal(err)
	}
	for _, engine := range []struct {
		direction, name string
		link            float64
	}{
		{"load", "memcpy", gpu.Link.H2D.SI()}, {"load", "flash", gpu.Link.H2D.SI()},
		{"save", "memcpy", gpu.Link.D2H.SI()}, {"save", "flash", gpu.Link.D2H.SI()},
	} {
		last := 0.0
		for _, tokens := range []int{4, 8, 16, 32} {
			v, err := bandwidth(engine.direction, engine.name, tokens, math.Max)(newLabResults(lab.Dir))
			if err != nil {
				t.Fatal(err)
			}
			if v*1e9 > engine.link || v < last || v <= 0 {
				t.Errorf("%s %s, blocks of %d tokens: %g GB/s after %g, link %g", engine.direction, engine.name, tokens, v, last, engine.link/1e9)
			}
			last = v
		}
	}
	if text, err := os.ReadFile(filepath.Join(lab.Dir, "fig04", tableFile)); err != nil || bytes.Count(text, []byte("\n")) != 17 {
		t.Errorf("table of %d lines (%v), want 17", bytes.Count(text, []byte("\n")), err)
	}
}
