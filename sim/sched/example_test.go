package sched_test

import (
	"fmt"

	"github.com/sparseserve/sparseserve/sim/memory"
	"github.com/sparseserve/sparseserve/sim/sched"
)

// With chunked prefill, decodes and a chunk of a prompt share an iteration's tokens.
func ExampleScheduler() {
	s, err := sched.New(sched.Config{
		Base: "vllm", MaxRequests: 8, MaxTokens: 100,
		Planner: sched.Planner{Mode: "chunked", Layers: 32, Chunk: 100},
		Memory:  memory.NewPool(1000, 16, 0.01, nil),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	s.Add(sched.NewRequest(1, 60, 3, &memory.Grant{}))
	s.Add(sched.NewRequest(2, 90, 3, &memory.Grant{}))
	for i := range 3 {
		fmt.Print("iteration ", i)
		batch := s.Next()
		for _, r := range batch.Decodes {
			fmt.Printf("; decode %d", r.ID)
			r.Generated++
		}
		for i := range batch.Prefills {
			seg := &batch.Prefills[i]
			fmt.Printf("; prefill %d [%d, %d)", seg.Req.ID, seg.TokenFrom, seg.TokenTo)
			if s.Planner().Commit(seg); seg.Req.Decoding() {
				seg.Req.Generated++
			}
		}
		fmt.Println()
	}
	// Output:
	// iteration 0; prefill 1 [0, 60); prefill 2 [0, 40)
	// iteration 1; decode 1; prefill 2 [40, 90)
	// iteration 2; decode 1; decode 2
}
