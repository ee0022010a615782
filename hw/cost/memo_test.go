package cost

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
)

// What costs keep of the last step changes no price of the next.
func TestPricesForget(t *testing.T) {
	allPairs(t, func(t *rapid.T, p *hw.Profile, m *llm.Model) {
		kept := newCoster(p, m, &DeviceOptions{})
		for range 6 {
			fresh := newCoster(p, m, &DeviceOptions{})
			n, rows := rapid.IntRange(0, 3).Draw(t, "tokens"), rapid.IntRange(0, 3).Draw(t, "rows")
			head, want := kept.head.seconds(n, rows), fresh.head.seconds(n, rows)
			if head != want {
				t.Fatalf("head of %d tokens, %d sampled: %v s, want %v", n, rows, head, want)
			}
			spans := []sim.Span{{Query: int(logInt(t, 1e4, "query")),
				Prefix: int(logInt(t, 1e5, "prefix"))}}
			got, _ := kept.prefill.of(spans)
			if want, _ := fresh.prefill.of(spans); got != want {
				t.Fatalf("prefill of %v: %v s, want %v", spans, got, want)
			}
		}
	})
}
