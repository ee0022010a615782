package cost

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
)

// Law 11 of prefill where an indexer selects: more queries, or longer prefixes, of any of several
// chunks never take less. General draws of work find a batch whose waves mix chunks too seldom.
func TestLaw11MonotoneSelected(t *testing.T) {
	p, err := hw.Load("h200", "vllm-0.15", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"deepseek-v3.2", "glm-5"} {
		m, err := llm.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		m.KVBytesEach = 2
		s := newSelected(p, &m)
		rapid.Check(t, func(t *rapid.T) {
			less := make([]sim.Span, rapid.IntRange(1, 4).Draw(t, "chunks"))
			more := make([]sim.Span, len(less))
			for i := range less {
				less[i] = sim.Span{Query: rapid.IntRange(0, 3000).Draw(t, "query"),
					Prefix: rapid.IntRange(0, 4000).Draw(t, "prefix")}
				more[i] = sim.Span{Query: less[i].Query + rapid.IntRange(0, 500).Draw(t, "more query"),
					Prefix: less[i].Prefix + rapid.IntRange(0, 3000).Draw(t, "more prefix")}
			}
			a, ai := s.prefill(less)
			b, bi := s.prefill(more)
			if b < a*(1-1e-12) || bi < ai {
				t.Fatalf("%s: %v takes %g and %g s, %v %g and %g s", name, less, a, ai, more, b, bi)
			}
		})
	}
}
