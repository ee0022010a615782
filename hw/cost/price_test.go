package cost

import (
	"math"
	"testing"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
)

// A layer adds up the prices of the single models.
func TestPricesAreTheDevices(t *testing.T) {
	for _, name := range hw.CardNames() {
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
			{"linears", Seconds(Of(p, m).GEMM, sim.Work{Tokens: 4}) + pw, dense.linears.Seconds()},
			{"prefill attention", Seconds(Of(p, m).PrefillAttention, sim.Work{Prefill: []sim.Span{span}}),
				got.prefill.Seconds()},
			{"sparse decode", Seconds(Of(p, m).SparseDecode, sim.Work{DecodeTokens: 9000, Decodes: 4}),
				got.sparse.Seconds()},
			{"dense decode", Seconds(Of(p, m).DenseDecode, sim.Work{DecodeTokens: 9000, Decodes: 4}),
				dense.dense.Seconds()},
			{"scoring", Seconds(Of(p, m).Scoring, sim.Work{ScoredBlocks: 3000, Decodes: 4}),
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
	if _, err := LoadSeconds(p, "rdma", 1, 1, 1); err == nil {
		t.Error("an unknown load engine has a price")
	}
	if _, err := SaveSeconds(p, "rdma", 1, 1, 0, 0); err == nil {
		t.Error("an unknown save engine has a price")
	}
}

func TestDecodeIterationErrors(t *testing.T) {
	p, m := mustProfile(t, "h200"), mustModel(t, "lwm-7b")
	for _, c := range [][2]int{{0, 1}, {1, 0}} {
		if _, err := DecodeIteration(p, m, c[0], c[1]); err == nil {
			t.Errorf("%v: want an error", c)
		}
	}
}
