package validate_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/validate"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/traces/records"
)

// The log of a server, here of two requests, is compared with the simulation of the same requests.
func ExampleReplay_Do() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	server, err := config.LoadServer("", []string{"model=llama2-7b", "gpu=h100-80gb"}, false, "")
	if err != nil {
		fmt.Println(err)
		return
	}
	replay := validate.Replay{
		Name: "two requests", Dir: filepath.Join(dir, "out"), Config: server, Run: run.NewSimulator().Run,
		Record: &records.Record{Requests: []records.Request{
			{At: 0, Prompt: 1000, Output: 11, TTFT: 0.05, E2E: 0.15},
			{At: des.Second, Prompt: 2000, Output: 11, TTFT: 0.09, E2E: 0.19},
		}},
	}
	report, err := replay.Do(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range report.Comparisons[:4] {
		fmt.Printf("%s: measured %.3f, from %d requests\n", c.Metric, c.Measured, c.Requests)
	}
	// Output:
	// ttft_mean_s: measured 0.070, from 2 requests
	// ttft_p50_s: measured 0.070, from 2 requests
	// ttft_p90_s: measured 0.086, from 2 requests
	// ttft_p99_s: measured 0.090, from 2 requests
}
