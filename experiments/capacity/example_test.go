package capacity_test

import (
	"context"
	"fmt"
	"os"

	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// A server whose queue delay passes 2 s at 0.4 requests/s sustains that rate.
func ExamplePlanner_Do() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	sweep, err := config.LoadPlan(context.Background(), "default",
		[]string{"system.preset=vllm", "goodput.width=0.1",
			"goodput.start=0.1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	candidates, err := capacity.Candidates(context.Background(), sweep)
	if err != nil {
		fmt.Println(err)
		return
	}
	store, err := run.OpenStore(dir, "example", true)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	server := func(_ context.Context, p config.Point, _ run.Sink) (metrics.Summary, error) {
		return metrics.Summary{Completed: 300, QueueDelay: metrics.Stats{Mean: 5 * p.Workload.Rate}}, nil
	}
	planner := capacity.Planner{Store: store, Run: server}
	found, err := planner.Do(context.Background(), sweep.Goodput, candidates)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, g := range found {
		fmt.Println(g.Name, g.Goodput, "req/s, limited by", g.LimitedBy)
	}
	// Output:
	// vllm 0.4 req/s, limited by delay
}
