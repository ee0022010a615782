package capacity

import (
	"context"
	"encoding/csv"
	"errors"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// queueing is a runner whose delay passes 2 s at a rate that system and seed
// set.
func queueing(_ context.Context, p config.Point, sink run.Sink) (metrics.Summary, error) {
	threshold := 0.1 + float64(p.Seed)/100
	if p.System.Name == "sparseserve" {
		threshold *= 4
	}
	return metrics.Summary{Completed: p.Workload.Requests, TBT: metrics.Stats{P99: 0.1},
		QueueDelay:     metrics.Stats{Mean: 2 * p.Workload.Rate / threshold},
		ThroughputTokS: 100 * p.Workload.Rate}, nil
}

// plan runs a plan in a folder.
func plan(t *testing.T, ctx context.Context, dir string, workers int, simulate run.Runner) (
	[]Goodput, error) {
	t.Helper()
	s, err := config.LoadPlan(t.Context(), "default", []string{"system.preset=[vllm, sparseserve]",
		"goodput.start=0.05"})
	if err != nil {
		t.Fatal(err)
	}
	candidates, err := Candidates(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	store, err := run.OpenStore(dir+"/points", "test", true)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	p := Planner{Store: store, Run: simulate, Workers: workers}
	found, err := p.Do(ctx, s.Goodput, candidates)
	if err == nil {
		files, err := GoodputFiles(found)
		if err := written(dir, files, err); err != nil {
			t.Fatal(err)
		}
	}
	return found, err
}

func TestPlan(t *testing.T) {
	t.Chdir(t.TempDir())
	var mu sync.Mutex
	times := map[string]int{}
	counted := func(ctx context.Context, p config.Point, sink run.Sink) (metrics.Summary, error) {
		mu.Lock()
		times[p.Name]++
		mu.Unlock()
		return queueing(ctx, p, sink)
	}
	found, err := plan(t, t.Context(), "many", 4, counted)
	if err != nil || len(found) != 2 {
		t.Fatalf("%d found, %v", len(found), err)
	}
	for i, want := range []float64{0.12, 0.48} { // near the harmonic mean over seeds
		g := &found[i]
		if g.Goodput > want || g.Goodput < want*0.97 || g.LimitedBy != "delay" {
			t.Errorf("%s: goodput %g limited by %q, want just below %g by the delay", g.Name, g.Goodput,
				g.LimitedBy, want)
		}
		if len(g.SeedGoodputs) != 3 || *g.Low > g.Goodput || *g.High < g.Goodput ||
			g.Bounds[1].ValueS > 2 || len(g.Warnings) > 0 {
			t.Errorf("%s: seeds %v, %g to %g, delay %g, warnings %q", g.Name, g.SeedGoodputs, *g.Low,
				*g.High, g.Bounds[1].ValueS, g.Warnings)
		}
		if math.Abs(g.ThroughputTokS-100*g.Goodput) > 1e-9 {
			t.Errorf("%s: throughput %g is not that at %g requests/s", g.Name, g.ThroughputTokS, g.Goodput)
		}
	}
	for name, n := range times {
		if n != 1 {
			t.Errorf("%s ran %d times", name, n)
		}
	}
	if runs := found[0].Runs + found[1].Runs; runs != len(times) {
		t.Errorf("%d runs reported, %d made", runs, len(times))
	}

	// The trail holds every run once, and an outcome for every rate of all seeds.
	rows := readTrail(t, "many/trail.csv")
	single, means := 0, map[string]bool{}
	for _, r := range rows {
		if r["seed"] == "mean" {
			means[r["candidate"]+r["rate"]] = true
			continue
		}
		single++
		_, text, _ := strings.Cut(r["bounds"], "delay_mean=")
		delay, err := strconv.ParseFloat(strings.TrimSuffix(text, "/2"), 64)
		if err != nil {
			t.Fatal(err)
		}
		if holds := delay <= 2; r["holds"] != strconv.FormatBool(holds) {
			t.Errorf("outcome %s for a delay of %g s", r["holds"], delay)
		}
		if _, err := os.Stat("many/points/" + r["hash"] + ".zip"); err != nil {
			t.Error(err)
		}
	}
	if single != len(times) {
		t.Errorf("%d runs in the trail, %d made", single, len(times))
	}
	for _, r := range rows {
		if r["stage"] != stageSeed && !means[r["candidate"]+r["rate"]] {
			t.Errorf("no outcome of %s at %s", r["candidate"], r["rate"])
		}
	}

	// One worker gives the same bytes; a second time nothing runs.
	if _, err := plan(t, t.Context(), "one", 1, queueing); err != nil {
		t.Fatal(err)
	}
	testkit.SameTree(t, testkit.Tree(t, "many"), testkit.Tree(t, "one"))
	if _, err := plan(t, t.Context(), "one", 2,
		func(context.Context, config.Point, run.Sink) (metrics.Summary, error) {
			return metrics.Summary{}, errors.New("ran again")
		}); err != nil {
		t.Error(err)
	}
}

func TestPlanGoesOnAfterAnInterrupt(t *testing.T) {
	t.Chdir(t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	ran := 0
	stopping := func(ctx context.Context, p config.Point, sink run.Sink) (metrics.Summary, error) {
		mu.Lock()
		defer mu.Unlock()
		if ran++; ran == 20 {
			cancel()
		}
		if ctx.Err() != nil {
			return metrics.Summary{}, ctx.Err()
		}
		return queueing(ctx, p, sink)
	}
	if _, err := plan(t, ctx, "out", 2, stopping); err != context.Canceled {
		t.Fatalf("error %v", err)
	}
	before := len(testkit.Tree(t, "out"))
	if _, err := plan(t, t.Context(), "out", 2, queueing); err != nil {
		t.Fatal(err)
	}
	if before < 10 { // a finished run is one file
		t.Errorf("%d files were kept", before)
	}
	if _, err := plan(t, t.Context(), "whole", 2, queueing); err != nil {
		t.Fatal(err)
	}
	testkit.SameTree(t, testkit.Tree(t, "whole"), testkit.Tree(t, "out"))
}

// opened are a sweep's candidates and a store of runs, until the test ends.
func opened(t *testing.T, s *config.Sweep) ([]Candidate, *run.Store) {
	t.Helper()
	candidates, err := Candidates(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	store, err := run.OpenStore(t.TempDir(), "test", true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return candidates, store
}

// As many runs are planned as are made by the end, and never fewer than are finished.
func TestNoMoreRunsFinishThanArePlanned(t *testing.T) {
	s := mustSweep(t, "default", "system.preset=vllm", "goodput.start=0.11")
	candidates, store := opened(t, s)
	var planned, finished atomic.Int64
	p := Planner{Store: store, Run: queueing, Workers: 3,
		Planned: func(runs int) { planned.Add(int64(runs)) },
		Finished: func() {
			if n := finished.Add(1); n > planned.Load() {
				t.Errorf("%d runs finished before they were planned", n)
			}
		}}
	found, err := p.Do(t.Context(), s.Goodput, candidates)
	if err != nil {
		t.Fatal(err)
	}
	if made := int64(found[0].Runs); planned.Load() != made || finished.Load() != made {
		t.Errorf("%d runs planned, %d finished, %d made", planned.Load(), finished.Load(), made)
	}
}

func readTrail(t *testing.T, path string) []map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	table, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]string
	for _, cells := range table[1:] {
		row := map[string]string{}
		for i, cell := range cells {
			row[table[0][i]] = cell
		}
		rows = append(rows, row)
	}
	return rows
}
