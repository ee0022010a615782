package cost

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/hw/llm"
)

// Law 2: the KV budget of a card leaves room for the model's tensors, the runtime, two copies of
// the logits, and the largest batch's activations in a layer, as counted from the model's shapes:
// of a token the hidden state, the residual, and either queries, keys, values and what attention
// gives, or gate and up.
func TestLaw2PlanHoldsWeightsAndActivations(t *testing.T) {
	p := mustProfile(t, "h200")
	rapid.Check(t, func(t *rapid.T) {
		n := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, name) }
		m := &llm.Model{Name: "drawn", Layers: n("layers", 1, 64), KVHeads: n("kv heads", 1, 16),
			HeadDim: 64 * n("head dim", 1, 4), Vocab: n("vocab", 1000, 200000), MaxContext: 1 << 20,
			WeightBytesEach: float64(n("weight bytes", 1, 2)), KVBytesEach: n("kv bytes", 1, 2),
			TiedEmbeddings: rapid.Bool().Draw(t, "tied"), QKVBias: rapid.Bool().Draw(t, "bias")}
		m.QHeads = m.KVHeads * n("queries a kv head", 1, 16)
		m.Hidden = m.QHeads * m.HeadDim / 2 * n("half widths of queries", 1, 4)
		m.FFN = m.Hidden * n("ffn", 2, 4)
		utilisation := rapid.Float64Range(0.1, 1).Draw(t, "utilisation")
		tokens, requests := n("tokens", 1, 1<<16), n("requests", 1, 1024)
		plan, err := p.KVBudget(m, utilisation, tokens, requests)
		if err != nil {
			return
		}
		q, kv := m.QHeads*m.HeadDim, m.KVHeads*m.HeadDim
		linears := m.Hidden*(q+kv+kv) + q*m.Hidden + 3*m.Hidden*m.FFN
		if m.QKVBias {
			linears += q + kv + kv
		}
		norms, tables := (2*m.Layers+1)*m.Hidden, 2
		if m.TiedEmbeddings {
			tables = 1
		}
		least := m.Layers*linears*int(m.WeightBytesEach) + (norms+tables*m.Vocab*m.Hidden)*2 +
			int(p.GPU.Runtime.SI()) + 2*requests*m.Vocab*4 +
			tokens*(2*m.Hidden+max(q+kv+kv+q, 2*m.FFN))*2
		if most := utilisation * p.GPU.HBMSize.SI(); float64(least)+float64(plan.KV) > most {
			t.Fatalf("law 2: %d bytes for KV and %d in use of %g\n%+v\n%+v", plan.KV, least, most, m, plan)
		}
	})
}
