package cost_test

import (
	"fmt"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
)

// A profile prices the parts of a layer's work one by one.
func ExampleOf() {
	profile, err := hw.Load("h200", "sparseserve-live", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	model, err := llm.Load("lwm-7b")
	if err != nil {
		fmt.Println(err)
		return
	}
	costs := cost.Of(profile, &model)
	fmt.Printf("GEMM of 2,048 tokens: %.0f us\n", 1e6*cost.Seconds(costs.GEMM, sim.Work{Tokens: 2048}))
	decode := sim.Work{Decodes: 8, DecodeTokens: 8 * 16384}
	fmt.Printf("decode of 8 contexts of 16,384 tokens: %.0f us\n",
		1e6*cost.Seconds(costs.DenseDecode, decode))
	// Output:
	// GEMM of 2,048 tokens: 1277 us
	// decode of 8 contexts of 16,384 tokens: 485 us
}

// A device passes the time of a step, layer by layer.
func ExampleDevice() {
	profile, err := hw.Load("h200", "sparseserve-live", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	model, err := llm.Load("lwm-7b")
	if err != nil {
		fmt.Println(err)
		return
	}
	t, err := cost.DecodeIteration(profile, &model, 32768, 1)
	fmt.Printf("a decode step of one request at 32,768 tokens: %.1f ms, %v\n", 1e3*t.Seconds(), err)
	// Output: a decode step of one request at 32,768 tokens: 9.0 ms, <nil>
}
