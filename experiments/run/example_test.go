package run_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
)

// Points are simulated on all cores, and each run is kept as an archive.
func ExampleGrid_Do() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	c, err := config.Load("", []string{"system.preset=[vllm, sparseserve]", "workload.requests=5"})
	if err != nil {
		fmt.Println(err)
		return
	}
	store, err := run.OpenStore(dir, run.ModelVersion, true)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	grid := run.Grid{Run: run.NewSimulator().Run, Store: store}
	results, err := grid.Do(context.Background(), c[:1])
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range results {
		fmt.Println(r.Point.Name, r.Summary.Completed, "of", r.Summary.Requests)
	}
	kept, _ := filepath.Glob(filepath.Join(dir, "*.zip"))
	fmt.Println(len(kept), "archive")
	// Output:
	// vllm-0.05-s1 5 of 5
	// 1 archive
}
