package hw

import (
	"math"
	"testing"

	"github.com/sparseserve/sparseserve/sim"
)

// A layer adds up the prices of the single models.
func TestPricesAreTheDevices(t *testing.T) {
	for _, name := range CardNames() {
		p, m := mustProfile(t, name), mustModel(t, "llama3-8b")
		span := sim.Span{Query: 700, Prefix: 5000}
		c := newCoster(p, m, &DeviceOptions{})
		got := *c.layer(&sim.Work{Tokens: 704, Decodes: 4, DecodeTokens: 9000, Prefill: []sim.Span{span},
			ScoredBlocks: 3000, Sparse: true})
		dense := *c.layer(&sim.Work{Tokens: 4, Decodes: 4, DecodeTokens: 9000})
		pw, _ := c.pointwise.of(4)
		for _, part := range []struct {
			name      string
			got, want float64
		}{
			{"linears", Seconds(p.Costs(m).GEMM, sim.Work{Tokens: 4}) + pw, dense.linears.Seconds()},
			{"prefill attention", Seconds(p.Costs(m).PrefillAttention, sim.Work{Prefill: []sim.Span{span}}),
				got.prefill.Seconds()},
			{"sparse decode", Seconds(p.Costs(m).SparseDecode, sim.Work{DecodeTokens: 9000, Decodes: 4}),
				got.sparse.Seconds()},
			{"dense decode", Seconds(p.Costs(m).DenseDecode, sim.Work{DecodeTokens: 9000, Decodes: 4}),
				dense.dense.Seconds()},
			{"scoring", Seconds(p.Costs(m).Scoring, sim.Work{ScoredBlocks: 3000, Decodes: 4}),
				got.scoring.Seconds()},
		} {
			if math.Abs(part.got-part.want) > 3e-9 {
				t.Errorf("%s, %s: priced alone %g, in a layer %g", name, part.name, part.got, part.want)
			}
		}
		a := newPrefillAttention(p, m, 0)
		if PrefillFLOPs(m, span) != a.spanFLOPs(span) {
			t.Errorf("FLOPs of a chunk: %g and %g", PrefillFLOPs(m, span), a.spanFLOPs(span))
		}
	}
	p := mustProfile(t, "h200")
	if _, err := p.LoadSeconds("rdma", 1, 1, 1); err == nil {
		t.Error("an unknown load engine has a price")
	}
	if _, err := p.SaveSeconds("rdma", 1, 1, 0, 0); err == nil {
		t.Error("an unknown save engine has a price")
	}
}
