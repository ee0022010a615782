package run_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
)

// Points are simulated on all cores, and their folders are kept.
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
	folder, err := run.OpenFolder(dir, "example", c, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer folder.Close()
	grid := run.Grid{Run: run.NewSimulator().Run, Store: folder.Store}
	results, err := grid.Do(context.Background(), c.Points()[:1])
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range results {
		fmt.Println(r.Point.Name, r.Summary.Completed, "of", r.Summary.Requests)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "points", "*", "*"))
	for _, f := range files {
		fmt.Println(filepath.Base(f))
	}
	// Output:
	// vllm-0.05-s1 5 of 5
	// config.toml
	// point.json
	// requests.csv
	// summary.json
}
