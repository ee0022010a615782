package cost

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
)

// More chunks of a batch, or more tokens before one, never take less than fewer, and no batch takes
// less than its FLOPs at the peak.
func TestPromptsOfAGridAreMonotone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		card := rapid.SampledFrom([]string{"a100-80gb", "h100-80gb", "b200", "l40s"}).Draw(t, "card")
		p, err := hw.Load(card, "vllm-0.15", nil)
		if err != nil {
			t.Fatal(err)
		}
		m, err := llm.Load(rapid.SampledFrom([]string{"llama2-7b", "llama3.1-8b", "qwen3-14b"}).Draw(t,
			"model"))
		if err != nil {
			t.Fatal(err)
		}
		a := newPrefillAttention(p, &m, 16)
		if a.grid == nil {
			t.Fatal("no grid")
		}
		var spans []sim.Span
		last := 0.0
		for range rapid.IntRange(1, 6).Draw(t, "chunks") {
			s := sim.Span{Query: rapid.IntRange(1, 40000).Draw(t, "query")}
			spans = append(spans, s)
			got, _ := a.of(spans)
			if got < last*(1-1e-9) {
				t.Fatalf("%v take %g s, all but the last %g", spans, got, last)
			}
			i := len(spans) - 1
			spans[i].Prefix = rapid.IntRange(1, 100000).Draw(t, "prefix")
			last, _ = a.of(spans)
			if last < got*(1-1e-9) {
				t.Fatalf("%v take %g s, without the last prefix %g", spans, last, got)
			}
		}
		flops := 0.0
		for _, s := range spans {
			flops += a.spanFLOPs(s)
		}
		if least := flops / p.GPU.PeakFP16.SI(); last < least {
			t.Fatalf("%v take %g s, %g at the peak", spans, last, least)
		}
	})
}
