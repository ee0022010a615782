package cost

import (
	"testing"

	"github.com/sparseserve/sparseserve/sim"
)

// A coster that remembers prices any sequence of Work as a fresh one does.
func TestCosterMemory(t *testing.T) {
	p, m := mustProfile(t, "h200"), mustModel(t, "lwm-7b")
	changes := []func(w *sim.Work){
		func(*sim.Work) {},
		func(w *sim.Work) { w.Tokens *= 2 },
		func(w *sim.Work) { w.DecodeTokens *= 2 },
		func(w *sim.Work) { w.ScoredBlocks *= 2 },
		func(w *sim.Work) { w.Sparse = false },
		func(w *sim.Work) { w.Prefill = []sim.Span{{Query: 2048, Prefix: 8192}} },
		func(w *sim.Work) { w.Prefill = nil },
		func(w *sim.Work) { w.Rounds = make([]sim.Round, 2) },
		func(w *sim.Work) { w.Sparse, w.Decodes, w.DecodeTokens = false, 2, 16384 },
	}
	prices := map[layerCost]bool{}
	for i, before := range changes {
		for j, after := range changes {
			c := newCoster(p, m, &DeviceOptions{})
			w := mixedBatch()[0]
			before(&w)
			c.layer(&w)
			for k := range w.Prefill { // the caller reuses its slice
				w.Prefill[k].Prefix *= 3
			}
			w = mixedBatch()[0]
			after(&w)
			fresh := newCoster(p, m, &DeviceOptions{})
			if got, want := *c.layer(&w), *fresh.layer(&w); got != want {
				t.Errorf("change %d after %d: want %+v, got %+v", j, i, want, got)
			} else {
				prices[want] = true
			}
		}
	}
	if len(prices) != len(changes) {
		t.Errorf("%d changes have %d prices: some change nothing", len(changes), len(prices))
	}
}

// Shapes without rows: linears scale with weights, pointwise parts with bytes
// above the launch, which all shapes share.
func TestCostsScaleToOtherShapes(t *testing.T) {
	p, m := mustProfile(t, "a100-80gb"), mustModel(t, "qwen2-7b")
	lin, pw := newGEMM(p, m), newElementwise(p, m)
	weights := 3584*(3584+2*512) + 3584*3584 + 3*3584*18944
	reference := 4*4096*4096 + 3*4096*11008
	bytes := 2 * (4*3584 + 6*3584 + 2*(28+4)*128 + 3*18944)
	perToken := 2 * (4*4096 + 6*4096 + 2*64*128 + 3*11008)
	report(t, []fact{
		{"linears, 4096 tokens, ms", 7.492, 7.492,
			ms(lin.of(4096)) * float64(reference) / float64(weights), 1e-9},
		{"pointwise, 1 token, ms", 0.024, 0.024, ms(pw.of(1)), 1e-9},
		{"pointwise, 2048 tokens, ms", 0.323, 0.323,
			(ms(pw.of(2048)) - 0.024) * float64(perToken) / float64(bytes), 1e-9},
	})
	if lin.exact {
		t.Error("qwen2-7b has no rows of its own")
	}
}
