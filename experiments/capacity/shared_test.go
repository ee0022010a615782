package capacity

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// tallied counts the runs that a runner begins.
func tallied(simulate run.Runner) (run.Runner, *atomic.Int64) {
	n := new(atomic.Int64)
	return func(ctx context.Context, p config.Point, sink run.Sink) (metrics.Summary, error) {
		n.Add(1)
		return simulate(ctx, p, sink)
	}, n
}

// plannedIn makes a plan of either kind in a folder and returns its files and runs.
func plannedIn(t *testing.T, dir string, s *config.Sweep, shared *run.Shared,
	simulate run.Runner) error {
	store, err := run.OpenStore(filepath.Join(dir, "points"), "test", shared == nil)
	if err != nil {
		return err
	}
	p := Planner{Store: store, Run: simulate, Workers: 2, Shared: shared}
	if s.Plan == nil {
		candidates, err := Candidates(t.Context(), s)
		if err != nil {
			return err
		}
		found, err := p.Do(t.Context(), s.Goodput, candidates)
		if err == nil && shared == nil {
			files, e := GoodputFiles(found)
			err = written(dir, files, e)
		}
		return errors.Join(err, store.Close())
	}
	offers, err := OffersOf(t.Context(), s)
	if err != nil {
		return err
	}
	answer, err := p.Purchase(t.Context(), offers)
	if err == nil && shared == nil {
		files, e := answer.Files()
		err = written(dir, files, e)
	}
	return errors.Join(err, store.Close())
}

// TestSharedPlans: tasks that share a plan make each of its runs once, and what is then collected
// makes none and has the bytes of a plan that one process makes. A task that fails in the middle
// leaves its candidate to the others.
func TestSharedPlans(t *testing.T) {
	bought := fmt.Sprintf(short, "rate = 30", "ttft_s = 0.6\ntbt_s = 0.15")
	searched, _, _ := strings.Cut(bought, "[plan]")
	_, axis, _ := strings.Cut(bought, "max_replicas = 5\n")
	searched += "[goodput]\nwidth = 0.3\ncoarse = true\n" + axis
	plans, lost := map[string]string{"bought": bought, "searched": searched}, []bool{false, true}
	if testing.Short() {
		delete(plans, "searched")
		lost = lost[1:]
	}
	for name, text := range plans {
		t.Run(name, func(t *testing.T) {
			path := testkit.Write(t, "plan.toml", text)
			s, err := config.LoadPlan(t.Context(), path, nil)
			if err != nil {
				t.Fatal(err)
			}
			simulate, made := tallied(queues)
			if err := plannedIn(t, "alone", s, nil, simulate); err != nil {
				t.Fatal(err)
			}
			want, alone := testkit.Tree(t, "alone"), made.Load()
			for _, fails := range lost {
				dir := fmt.Sprint("shared-", fails)
				before := made.Load()
				first := 0
				if fails {
					first = 1
					err := plannedIn(t, dir, s, &run.Shared{Task: 0, Tasks: 4}, failing)
					if err == nil || !strings.HasSuffix(err.Error(), "lost") {
						t.Errorf("a task without a machine: %v", err)
					}
				}
				var wait sync.WaitGroup
				for task := first; task < 4; task++ {
					wait.Go(func() {
						err := plannedIn(t, dir, s, &run.Shared{Task: task, Tasks: 4}, simulate)
						if err != nil {
							t.Errorf("task %d: %v", task, err)
						}
					})
				}
				wait.Wait()
				if n := made.Load() - before; n != alone {
					t.Errorf("tasks made %d runs, one process %d", n, alone)
				}
				if err := plannedIn(t, dir, s, nil, simulate); err != nil {
					t.Fatal(err)
				}
				if again := made.Load() - before - alone; again != 0 {
					t.Errorf("collecting made %d runs", again)
				}
				testkit.SameTree(t, want, testkit.Tree(t, dir))
			}
		})
	}
}

// failing is a runner on a machine that is lost.
func failing(context.Context, config.Point, run.Sink) (metrics.Summary, error) {
	return metrics.Summary{}, errors.New("lost")
}
