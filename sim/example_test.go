package sim_test

import (
	"context"
	"fmt"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// steady is a device whose steps take 10 ms.
type steady struct{ steps int64 }

func (d *steady) Begin(*sim.Step) error        { d.steps++; return nil }
func (d *steady) Score(int, *sim.Work) error   { return nil }
func (d *steady) Move(*kv.Moves) error         { return nil }
func (d *steady) Compute(int, *sim.Work) error { return nil }
func (d *steady) Drain() (des.Time, error)     { return 0, nil }
func (d *steady) Finish() (metrics.Timing, error) {
	return metrics.Timing{Elapsed: 10 * des.Millisecond, SavedSteps: d.steps}, nil
}

// printed prints a run's requests.
type printed struct{}

func (printed) Gap(des.Time)             {}
func (printed) Step(*metrics.Step) error { return nil }
func (printed) Request(r *metrics.Request) error {
	fmt.Printf("request %d: first token at %v, last at %v\n", r.ID, r.FirstToken, r.LastToken)
	return nil
}

// A server of full attention serves two requests: 100 tokens an iteration, so the second
// prompt's last chunk runs with the first request's decode.
func ExampleServer_Run() {
	server, err := sim.NewServer(sim.Config{
		Spec: sim.Spec{
			Selection: sim.SelectionSpec{}, BlockTokens: 16, Scheduler: "vllm", MaxRequests: 8,
			MaxTokens:  100,
			Prefill:    sim.PrefillSpec{Split: "chunked", ChunkTokens: 100, OverLength: "truncate"},
			Simulation: sim.SimulationSpec{Heads: "full"},
		},
		Model:    sim.Model{Layers: 2, KVHeads: 2, TokenValues: 128, MaxContext: 1000},
		Geometry: kv.Geometry{Layers: 2, KVHeads: 2, BlockTokens: 16, BlockBytes: 1 << 12},
		HBMBytes: 1 << 22, Device: &steady{},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	w := &list{arrivals: []sim.Arrival{{Prompt: 60, Output: 2}, {Prompt: 90, Output: 3}}}
	if _, err := server.Run(context.Background(), w, printed{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// request 1: first token at 10ms, last at 20ms
	// request 2: first token at 20ms, last at 40ms
}
