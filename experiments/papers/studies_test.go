package papers

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"gonum.org/v1/gonum/stat"
)

// newStudies is a studies with a store of its own.
func newStudies(t *testing.T, simulate run.Runner) *Studies {
	t.Helper()
	store, err := run.OpenStore(t.TempDir(), "test", true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return &Studies{Dir: t.TempDir(), Store: store, Run: simulate}
}

// countingStudies is a studies whose runs do nothing but count.
func countingStudies(t *testing.T) (*Studies, *atomic.Int64) {
	runs := &atomic.Int64{}
	return newStudies(t, func(_ context.Context, p config.Point, _ run.Sink) (metrics.Summary, error) {
		runs.Add(1)
		return metrics.Summary{Completed: 1, ThroughputTokS: p.Workload.OutputScale}, nil
	}), runs
}

func TestStudiesKeepsRuns(t *testing.T) {
	studies, runs := countingStudies(t)
	var planned, finished atomic.Int64
	studies.Planned = func(n int) { planned.Add(int64(n)) }
	studies.Finished = func() { finished.Add(1) }
	do := func(want int64, notes int, names ...string) {
		t.Helper()
		for _, n := range []*atomic.Int64{runs, &planned, &finished} {
			n.Store(0)
		}
		err := studies.Do(t.Context(), names...)
		if got := studies.Store.Notes(); err != nil || len(got) != notes {
			t.Fatalf("notes %q, %v", got, err)
		}
		if runs.Load() != want || planned.Load() != want || finished.Load() != want {
			t.Errorf("%v: %d runs, %d planned, %d finished, want %d", names, runs.Load(), planned.Load(),
				finished.Load(), want)
		}
	}
	do(40, 0, "fig16a") // 2 plans, 4 rates, 5 seeds
	do(0, 0, "fig16a")
	do(85, 0, "fig15") // 100, of which five seeds of SparseServe at 0.2, 0.25 and 0.3 are in Fig. 16a
	kept, err := filepath.Glob(filepath.Join(studies.Store.Dir(), "*.zip"))
	if err != nil || len(kept) != 125 {
		t.Fatalf("%d kept runs (%v), want 125", len(kept), err)
	}
	if err := os.WriteFile(kept[0], []byte(`{"name":"spars`), 0o644); err != nil {
		t.Fatal(err)
	}
	do(1, 1, "fig15", "fig16a") // what a corrupted file held is run again
}

// Fig. 13 is what the command plan finds, and shares the runs of the others.
func TestStudiesGoodput(t *testing.T) {
	studies := newStudies(t, queueing)
	if err := studies.Do(t.Context(), "fig13a"); err != nil {
		t.Fatal(err)
	}
	s := mustSweep(t, "fig13a")
	candidates, err := capacity.Candidates(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	p := capacity.Planner{Store: studies.Store,
		Run: func(context.Context, config.Point, run.Sink) (metrics.Summary, error) {
			return metrics.Summary{}, errors.New("ran again")
		}}
	found, err := p.Do(t.Context(), s.Goodput, candidates)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files, err := capacity.GoodputFiles(found)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.WriteFiles(dir, files...); err != nil {
		t.Fatal(err)
	}
	kept := testkit.Tree(t, filepath.Join(studies.Dir, "fig13a"))
	delete(kept, run.IndexFile)
	delete(kept, run.QuestionFile)
	testkit.SameTree(t, testkit.Tree(t, dir), kept)

	// The claim's ratio is that of the goodputs; with a seed left out, of the
	// others' own.
	r := newResults(studies.Dir)
	claims, err := Claims("ss-fig13-total")
	if err != nil {
		t.Fatal(err)
	}
	m := claims[0].measured(0)
	if got, err := r.measure(m); err != nil || got != found[5].Goodput/found[0].Goodput {
		t.Errorf("ratio %g (%v), want %g", got, err, found[5].Goodput/found[0].Goodput)
	}
	left := uint64(2)
	r.left = &left
	own := func(g capacity.Goodput) float64 {
		return stat.Mean(slices.Delete(slices.Clone(g.SeedGoodputs), 1, 2), nil)
	}
	if got, err := r.measure(m); err != nil || math.Abs(got-own(found[5])/own(found[0])) > 1e-12 {
		t.Errorf("without seed 2: ratio %g (%v), want %g", got, err, own(found[5])/own(found[0]))
	}
	if seeds, err := r.seeds([]string{"fig13a"}); err != nil ||
		!slices.Equal(seeds, []uint64{1, 2, 3, 4, 5, 6, 7, 8}) {
		t.Errorf("seeds %v (%v)", seeds, err)
	}
}

func TestStudiesErrors(t *testing.T) {
	studies, _ := countingStudies(t)
	if err := studies.Do(t.Context(), "fig3"); err == nil ||
		!strings.Contains(err.Error(), "no such experiment of the paper") {
		t.Errorf("unknown experiment: error is %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := studies.Do(ctx, "fig15"); err == nil {
		t.Error("no error when cancelled")
	}
	if _, err := os.Stat(filepath.Join(studies.Dir, "fig15", run.SummaryFile)); err == nil {
		t.Error("cancelled, but a result was written")
	}
}

// Overlap by its definition: the union of the last w steps' blocks.
func TestStreamOverlap(t *testing.T) {
	steps := [][]float32{{3, 2, 1, 0}, {3, 1, 2, 0}, {0, 1, 2, 3}, {3, 2, 1, 0}, {0, 3, 2, 1},
		{1, 0, 3, 2}}
	s := dsa.Record(4, len(steps), dsa.TopK{K: 2},
		func(t int) *dsa.View { return &dsa.View{Critical: steps[t]} })
	windows := []int{1, 2, 3}
	const phase, length, fixed = 2, 5, 1
	got := streamOverlap(s, phase, length, fixed, windows)
	for i, w := range windows {
		hits, total := 0, 0
		for n := range length {
			at := phase + 1 + windows[len(windows)-1] + n
			seen := map[uint16]bool{}
			for back := 1; back <= w; back++ {
				for _, b := range s.At((at - back) % s.Steps).Next {
					seen[b] = true
				}
			}
			total, hits = total+2+fixed, hits+fixed
			for _, b := range s.At(at % s.Steps).Next {
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
	studies, _ := countingStudies(t)
	if err := studies.Do(t.Context(), "fig04"); err != nil {
		t.Fatal(err)
	}
	gpu, err := hw.Load("a100-40gb", "vllm-0.5", nil)
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
			v, err := newResults(studies.Dir).measure(&measurement{source: source{From: []string{"fig04"},
				Over: filter{"direction": engine.direction, "engine": engine.name, "block_tokens": tokens}},
				Metric: "gb_s"})
			if err != nil {
				t.Fatal(err)
			}
			if v*1e9 > engine.link || v < last || v <= 0 {
				t.Errorf("%s %s, blocks of %d tokens: %g GB/s after %g, link %g", engine.direction, engine.name,
					tokens, v, last, engine.link/1e9)
			}
			last = v
		}
	}
	if text, err := os.ReadFile(filepath.Join(studies.Dir, "fig04", tableFile)); err != nil ||
		bytes.Count(text, []byte("\n")) != 17 {
		t.Errorf("table of %d lines (%v), want 17", bytes.Count(text, []byte("\n")), err)
	}
}

// All policies see one sequence of accesses, none loads less than the optimum, and a larger pool
// never makes LRU or the optimum load more; also with progressive attention, whose loads may go
// unused.
func TestEvictionStudy(t *testing.T) {
	t.Run("top-k", func(t *testing.T) { testEvictionStudy(t) })
	t.Run("psa", func(t *testing.T) {
		if testing.Short() {
			t.Skip("a study of 10 s; make test-all runs it")
		}
		testEvictionStudy(t, "system.preset=sparseserve-psa", "selection.epsilon=0.75")
	})
}

func testEvictionStudy(t *testing.T, sets ...string) {
	studies, _ := countingStudies(t)
	studies.Sets = append(sets, "workload.requests=5", "workload.rate=1", "simulation.groups=4")
	if err := studies.Do(t.Context(), "eviction"); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(studies.Dir, "eviction", tableFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var spec evictionSpec
	readStudy(t, "eviction", &spec)
	type key struct{ seed, pool, eviction, gib string }
	loaded, selected := map[key]int{}, map[string]string{}
	for _, r := range rows[1:] {
		k := key{r[0], r[1], r[2], r[3]}
		if loaded[k], err = strconv.Atoi(r[6]); err != nil {
			t.Fatal(err)
		}
		if s, known := selected[r[0]]; known && s != r[5] {
			t.Errorf("%v selects %s blocks, others %s", k, r[5], s)
		}
		selected[r[0]] = r[5]
	}
	if want := len(spec.Seeds) * len(spec.Pools) * len(spec.KVGiB) * (len(kv.EvictionNames()) +
		1); len(loaded) < want/2 {
		t.Errorf("%d rows of %d", len(loaded), want)
	}
	missed := false
	for k, n := range loaded {
		best := loaded[key{k.seed, k.pool, optimumName, k.gib}]
		if best == 0 && len(sets) > 0 {
			continue // progressive attention gives the slots of one round to the next
		}
		if best == 0 || n < best {
			t.Errorf("%v loads %d blocks, the optimum %d", k, n, best)
		}
		missed = missed || n > best
		if k.eviction != kv.LRU && k.eviction != optimumName {
			continue
		}
		for i, gib := range spec.KVGiB[1:] {
			more, ok := loaded[key{k.seed, k.pool, k.eviction, stats.Exact(gib)}]
			if ok && stats.Exact(spec.KVGiB[i]) == k.gib && more > n {
				t.Errorf("%v loads %d blocks, with %g GiB %d", k, n, gib, more)
			}
		}
	}
	if !missed {
		t.Error("everything fits in every pool")
	}
}
