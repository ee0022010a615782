package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// pretend is a runner whose results depend on the point alone.
func pretend(_ context.Context, p config.Point, sink Sink) (metrics.Summary, error) {
	fmt.Fprintf(sink.Requests, "id,ttft_s\n")
	for i := range p.Workload.Requests {
		fmt.Fprintf(sink.Requests, "%d,%g\n", i, p.Workload.Rate*float64(i))
		sink.Finished()
	}
	if sink.Steps != nil {
		fmt.Fprintln(sink.Steps, "step")
	}
	return metrics.Summary{
		Requests: p.Workload.Requests, Completed: p.Workload.Requests,
		TTFT:   metrics.Stats{Mean: 10 * p.Workload.Rate, P99: 1},
		PhaseS: map[string]float64{"linears": 1, "host": 2},
		SLOMet: new(false),
	}, nil
}

// runAll runs the configuration into dir.
func runAll(t *testing.T, dir string, c []config.Point, workers int, run Runner) ([]Result, error) {
	t.Helper()
	folder, err := openRuns(dir, "test", c, false)
	if err != nil {
		t.Fatal(err)
	}
	results, runErr := folder.Store.Do(t.Context(), Grid{Run: run, Workers: workers}, c)
	if _, err := folder.Finish(results); err != nil {
		t.Fatal(err)
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	return results, runErr
}

// TestLaw9SameBytes: the same configuration and seed give the same files,
// whatever the number of workers.
func TestLaw9SameBytes(t *testing.T) {
	c := mustLoad(t, "", "workload.requests=20", "seed=[1,2]", "output.steps=true")
	late := func(ctx context.Context, p config.Point, sink Sink) (metrics.Summary, error) {
		// Points end in another order than they start in.
		time.Sleep(time.Duration(p.Seed*uint64(p.Workload.Rate*100)%7) * time.Millisecond)
		return pretend(ctx, p, sink)
	}
	one, many := t.TempDir(), t.TempDir()
	results, err := runAll(t, one, c, 1, late)
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != 4*5*2 {
		t.Fatalf("%d results, want 40", len(results))
	}
	if _, err := runAll(t, many, c, 7, late); err != nil {
		t.Fatal(err)
	}
	a, b := testkit.Tree(t, one), testkit.Tree(t, many)
	if len(a) != 7 {
		t.Errorf("%d files, want five, and two of the store", len(a))
	}
	if len(a) != len(b) {
		t.Errorf("%d files with one worker, %d with seven", len(a), len(b))
	}
	for path, text := range a {
		if b[path] != text {
			t.Errorf("%s differs", path)
		}
	}
}

func TestPointFiles(t *testing.T) {
	c := mustLoad(t, "", "workload.requests=3", "workload.rate=0.2", "system.preset=sparseserve")
	dir := t.TempDir()
	if _, err := runAll(t, dir, c, 1, pretend); err != nil {
		t.Fatal(err)
	}
	index, err := ReadIndex(dir)
	if err != nil || len(index.Runs) != 1 {
		t.Fatalf("%+v, %v", index, err)
	}
	place := filepath.Join(dir, index.Runs[0].Folder)
	requests, err := files.ReadResult(filepath.Join(place, RequestsCSV))
	if got, want := string(requests), "id,ttft_s\n0,0\n1,0.2\n2,0.4\n"; got != want || err != nil {
		t.Errorf("requests.csv is %q, want %q; %v", got, want, err)
	}
	if files.HasResult(filepath.Join(place, StepsCSV)) {
		t.Error("steps.csv was written unasked")
	}
	written := testkit.Tree(t, dir)
	testkit.Golden(t, "summary.json", written["summary.json"])
	testkit.Golden(t, "summary.csv", strings.ReplaceAll(written["summary.csv"], index.Runs[0].Hash,
		"HASH"))
	testkit.Golden(t, "config.toml", written["config.toml"])

	// A point's own configuration gives that point again.
	again := mustLoad(t, filepath.Join(place, ConfigFile))
	points := again
	if len(points) != 1 {
		t.Fatalf("%d points, want one", len(points))
	}
	hashes := config.NewHasher()
	before, err1 := hashes.Hash(&c[0])
	after, err2 := hashes.Hash(&points[0])
	if before != after || err1 != nil || err2 != nil {
		t.Errorf("hash %s (%v), loaded again %s (%v)", before, err1, after, err2)
	}
}

func TestHashTellsPointsApart(t *testing.T) {
	seen := map[string]string{}
	c := mustLoad(t, "", "seed=[1,2]")
	more := mustLoad(t, "", "seed=[1,2]", "offload.working_set_steps=13")
	for _, p := range append(c, more...) {
		hash, err := config.NewHasher().Hash(&p)
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[hash]; ok {
			t.Errorf("%s and %s have one hash", p.Name, other)
		}
		seen[hash] = p.Name
	}
}

// TestFailureLeavesNothingPartial: finished points stay, the failed one leaves
// no file.
func TestFailureLeavesNothingPartial(t *testing.T) {
	c := mustLoad(t, "", "workload.requests=3", "system.preset=[vllm]")
	boom := errors.New("boom")
	dir := t.TempDir()
	results, err := runAll(t, dir, c, 1,
		func(ctx context.Context, p config.Point, sink Sink) (metrics.Summary, error) {
			sum, err := pretend(ctx, p, sink)
			if p.Workload.Rate == 0.15 {
				err = boom
			}
			return sum, err
		})
	if !errors.Is(err, boom) || !strings.Contains(err.Error(), "vllm-0.15-s1") {
		t.Errorf("error is %v, want one that names the point", err)
	}
	if len(results) != 2 {
		t.Errorf("%d results, want the two before the failure", len(results))
	}
	index, err := ReadIndex(dir)
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, r := range index.Runs {
		if files.HasResult(filepath.Join(dir, r.Folder, SummaryFile)) {
			kept = append(kept, r.Label)
		}
	}
	if want := []string{"vllm-0.2-s1", "vllm-0.25-s1"}; !slices.Equal(kept, want) {
		t.Errorf("runs left: %v, want %v", kept, want)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, RunsFolder, ".*"+Unfinished)); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestCancelKeepsFinishedPoints(t *testing.T) {
	c := mustLoad(t, "", "workload.requests=3")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var finished atomic.Int32
	dir := t.TempDir()
	folder, err := openRuns(dir, "test", c, false)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	grid := Grid{Store: folder.Store, Workers: 2, Run: func(ctx context.Context, p config.Point,
		sink Sink) (metrics.Summary, error) {
		if finished.Add(1) > 3 {
			cancel()
			<-ctx.Done()
			return metrics.Summary{}, ctx.Err()
		}
		return pretend(ctx, p, sink)
	}}
	results, err := grid.Do(ctx, c)
	if err != context.Canceled {
		t.Errorf("error is %v, want that of the context alone", err)
	}
	if len(results) != 3 {
		t.Errorf("%d results, want the three that finished", len(results))
	}
	if entries, _ := filepath.Glob(filepath.Join(dir, RunsFolder, "*.zip")); len(entries) != 3 {
		t.Errorf("%d points kept, want 3", len(entries))
	}
}

func TestGridCountsRequests(t *testing.T) {
	c := mustLoad(t, "", "workload.requests=7")
	var n atomic.Int64
	grid := Grid{Run: pretend, Workers: 3, Finished: func() { n.Add(1) }}
	results, err := grid.Do(t.Context(), c)
	if err != nil || n.Load() != int64(7*len(c)) {
		t.Errorf("%d requests reported, %v", n.Load(), err)
	}
	if r := results[len(results)-1]; r.Summary.System != "sparseserve" || r.Summary.Rate != 0.25 ||
		r.Summary.Name != r.Point.Name {
		t.Errorf("last result is %s, %s at %g", r.Summary.Name, r.Summary.System, r.Summary.Rate)
	}
}
