package cost

import (
	"testing"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
)

// Batches run in the next larger graph of their kind. SGLang's graphs of prefills end at 2,048
// tokens for models with latents; vLLM's hold prefills and decodes.
func TestGraphsOfBatches(t *testing.T) {
	prefill := make([]sim.Span, 1)
	for _, c := range []struct {
		engine, model string
		prefill       bool
		tokens, want  int // padded; 0: kernel by kernel
	}{
		{"sglang-0.5", "llama3-8b", true, 1000, 1024}, {"sglang-0.5", "llama3-8b", true, 5000, 5120},
		{"sglang-0.5", "llama3-8b", false, 9, 12}, {"sglang-0.5", "llama3-8b", false, 600, 0},
		{"sglang-0.5", "deepseek-r1", true, 2000, 2048}, {"sglang-0.5", "deepseek-r1", true, 2049, 0},
		{"sglang-0.4", "llama3-8b", true, 100, 0}, {"vllm-0.19", "llama3-8b", true, 250, 256},
		{"vllm-0.19", "llama3-8b", true, 513, 0},
	} {
		p, err := hw.Load("h100-80gb", c.engine, nil)
		if err != nil {
			t.Fatal(err)
		}
		g, w := graphsOf(p, mustModel(t, c.model)), sim.Work{Tokens: c.tokens}
		if c.prefill {
			w.Prefill = prefill
		}
		if got, graph := holds(&g, &w); graph != (c.want > 0) || got != max(c.want, c.tokens) {
			t.Errorf("%+v: %d, graph %v", c, got, graph)
		}
	}
}
