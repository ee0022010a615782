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

	"golang.org/x/sync/errgroup"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

const smallSweep = `seed = [1, 2]
[workload]
requests = 3
rate = [0.1, 0.2]
[system]
preset = ["vllm", "sparseserve"]
[[axis]]
grid.offload.working_set_steps = [4, 8]
`

// runSweep runs a sweep into dir and returns the results, Do's error, and the number of points that
// ran.
func runSweep(t *testing.T, dir string, s *config.Sweep, workers int, run Runner) (results []Result,
	notes []string, ran int, err error) {
	t.Helper()
	f, err := openSweep(dir, "", s)
	if err != nil {
		return nil, nil, 0, err
	}
	defer f.Close()
	var n atomic.Int32
	counted := func(ctx context.Context, p config.Point, sink Sink) (metrics.Summary, error) {
		n.Add(1)
		return run(ctx, p, sink)
	}
	results, err = f.Store.Do(t.Context(), Grid{Run: counted, Workers: workers},
		f.question.Runs)
	if err == nil {
		if _, err := f.Finish(results); err != nil {
			t.Fatal(err)
		}
	}
	return results, f.Store.Notes(), int(n.Load()), err
}

func TestSweepSameBytesForAnyWorkers(t *testing.T) {
	s := mustSweep(t, testkit.Write(t, "s.toml", smallSweep))
	late := func(ctx context.Context, p config.Point, sink Sink) (metrics.Summary, error) {
		steps := uint64(p.System.Offload.WorkingSetSteps)
		time.Sleep(time.Duration(p.Seed*steps*uint64(p.Workload.Rate*10)%5) *
			time.Millisecond)
		return pretend(ctx, p, sink)
	}
	results, _, ran, err := runSweep(t, "one", s, 1, late)
	if err != nil || ran != 16 || len(results) != 16 {
		t.Fatalf("%d of 16 points ran, %d results, %v", ran, len(results), err)
	}
	if _, _, _, err := runSweep(t, "many", s, 6, late); err != nil {
		t.Fatal(err)
	}
	one := testkit.Tree(t, "one")
	if len(one) != 6 {
		t.Errorf("%d files", len(one))
	}
	testkit.SameTree(t, one, testkit.Tree(t, "many"))
	for _, name := range []string{"summary.csv", "index.json", "question.toml"} {
		text := one[name]
		for _, p := range mustPoints(t, s) { // every new key makes new hashes
			text = strings.ReplaceAll(text, DigestOf(p.Hash, "test"), "HASH")
		}
		testkit.Golden(t, "sweep-"+name, text)
	}
}

func TestSweepRunsOnlyWhatIsMissing(t *testing.T) {
	t.Chdir(t.TempDir())
	s := mustSweep(t, testkit.Rewrite(t, "s.toml", smallSweep))
	boom := errors.New("boom")
	var n atomic.Int32
	results, _, _, err := runSweep(t, "out", s, 1,
		func(ctx context.Context, p config.Point, sink Sink) (metrics.Summary, error) {
			if n.Add(1) > 5 {
				fmt.Fprintln(sink.Requests, "half a file")
				return metrics.Summary{}, boom
			}
			return pretend(ctx, p, sink)
		})
	if !errors.Is(err, boom) || len(results) != 5 {
		t.Fatalf("%d results, %v; want five and the failure", len(results), err)
	}
	if _, _, ran, err := runSweep(t, "out", s, 2, pretend); err != nil || ran != 11 {
		t.Errorf("%d ran, %v; want the other eleven", ran, err)
	}
	if _, _, ran, err := runSweep(t, "out", s, 2, pretend); err != nil || ran != 0 {
		t.Errorf("%d ran, %v; want none", ran, err)
	}
	if _, _, _, err := runSweep(t, "whole", s, 2, pretend); err != nil {
		t.Fatal(err)
	}
	testkit.SameTree(t, testkit.Tree(t, "whole"), testkit.Tree(t, "out"))

	// One value more: its points alone run. Then back: the tables would lose them.
	more := mustSweep(t,
		testkit.Rewrite(t, "s.toml", strings.Replace(smallSweep, "[4, 8]", "[4, 8, 16]", 1)))
	if results, _, ran, err := runSweep(t, "out", more, 2, pretend); err != nil || ran != 8 ||
		len(results) != 24 {
		t.Errorf("%d ran, %d results, %v; want 8 and 24", ran, len(results), err)
	}
	if _, _, ran, err := runSweep(t, "out", s, 2, pretend); !errors.Is(err, ErrTaken) || ran != 0 {
		t.Errorf("%d ran, %v; want none and %v", ran, err, ErrTaken)
	}
}

// TestSweepIndexFindsEverything: from the index alone, every point's summary.
func TestSweepIndexFindsEverything(t *testing.T) {
	s := mustSweep(t, testkit.Write(t, "s.toml", smallSweep))
	f, err := openSweep("out", "kept", s)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Store.Do(t.Context(), Grid{Run: pretend}, f.question.Runs); err != nil {
		t.Fatal(err)
	}
	index, err := ReadIndex("out")
	if err != nil {
		t.Fatal(err)
	}
	if len(index.Runs) != 16 || !slices.Equal(index.Axes, []string{"offload.working_set_steps"}) {
		t.Fatalf("%d runs over %v", len(index.Runs), index.Axes)
	}
	for _, p := range index.Runs {
		sum, err := ReadSummary(filepath.Join("out", p.Folder))
		if err != nil || sum.System != p.System || sum.Rate != p.Rate || sum.Seed != p.Seed {
			t.Errorf("%s: %v, %+v", p.Label, err, sum)
		}
	}
}

// TestFullDiskKeepsWhatIsFinished: a write that finds no room fails one point with advice.
func TestLongestFirst(t *testing.T) {
	s := mustSweep(t, testkit.Write(t, "s.toml", "[workload]\nrequests = 3\n[system]\npreset = "+
		"[\"vllm\", \"sparseserve\"]\n[[axis]]\ngrid.workload.rate = [0.1, 0.2]"))
	points := mustPoints(t, s)
	var names []string
	for _, p := range longestFirst(points) {
		names = append(names, p.Name)
	}
	if want := []string{"sparseserve-0.2-s1", "sparseserve-0.1-s1", "vllm-0.2-s1",
		"vllm-0.1-s1"}; !slices.Equal(names, want) {
		t.Errorf("order %v, want %v", names, want)
	}
}

// Processes that begin in a new folder at once find their own store there, not a stranger's files.
func TestStoresBeginTogether(t *testing.T) {
	c := mustLoad(t, "", twoRates...)
	for range 10 {
		dir := t.TempDir()
		var group errgroup.Group
		for range 8 {
			group.Go(func() error {
				s, err := OpenStore(dir, "test", false)
				if err != nil {
					return err
				}
				_, err = s.Do(t.Context(), Grid{Run: pretend}, c)
				return errors.Join(err, s.Close())
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
	}
}

// A packed store has the runs and words of a loose one; what is made anew takes the place of what
// was packed.
func TestPack(t *testing.T) {
	c, dir := mustLoad(t, "", twoRates...), t.TempDir()
	points := c
	open := func() *Store {
		s, err := OpenStore(dir, "test", true)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	do := func(s *Store) (ran int) {
		t.Helper()
		results, err := s.Do(t.Context(), Grid{Workers: 1, Run: func(ctx context.Context,
			p config.Point, sink Sink) (metrics.Summary, error) {
			ran++
			return pretend(ctx, p, sink)
		}}, points)
		if err != nil || len(results) != 2 || len(s.Notes()) > 0 || results[1].Summary.Completed != 3 {
			t.Fatalf("%+v, %v, %v", results, s.Notes(), err)
		}
		return ran
	}
	for i, forget := range []int{0, 0, 1} {
		s := open()
		if err := s.Forget(points[:forget]); err != nil {
			t.Fatal(err)
		}
		ran := do(s)
		if want := []int{2, 0, 1}[i]; ran != want {
			t.Errorf("the %d. time %d ran, want %d", i+1, ran, want)
		}
		if err := errors.Join(s.Pack(), s.Close()); err != nil {
			t.Fatal(err)
		}
		entries, err := filepath.Glob(filepath.Join(dir, "[^.]*"))
		if err != nil || len(entries) != 1 {
			t.Errorf("%v, %v; want one archive", entries, err)
		}
	}
	s := open()
	defer s.Close()
	place, _, err := s.Find(&points[0])
	text, readErr := files.ReadResult(filepath.Join(place, RequestsCSV))
	if err != nil || readErr != nil || !strings.HasPrefix(string(text), "id,ttft_s\n0,0\n") {
		t.Errorf("%q, %v, %v", text, err, readErr)
	}
}
