package calibrate

import (
	"math"

	"github.com/sparseserve/sparseserve/hw/llm"
)

// kvToken is the bytes of a token's K and V in one layer, fp16.
func kvToken(m *llm.Model) float64 { return float64(2 * 2 * m.KVHeads * m.HeadDim) }

// layerWeights returns the number of weights in a layer's four matrices.
func layerWeights(m *llm.Model) float64 {
	h, q, kv, f := m.Hidden, m.QHeads*m.HeadDim, m.KVHeads*m.HeadDim, m.FFN
	return float64(h*(q+2*kv) + q*h + 3*h*f)
}

// matrices returns the time to read and multiply fp16 weights. Reading and multiplying overlap, but
// not fully where they take about the same time, so their cubes are summed.
func (t *machine) matrices(weights, tokens float64) float64 {
	return math.Cbrt(math.Pow(2*weights/t.gemmRead, 3) + math.Pow(2*tokens*weights/t.gemmCompute, 3))
}

func (t *machine) linears(m *llm.Model, tokens float64) float64 {
	return t.gemmLaunch + t.matrices(layerWeights(m), tokens)
}

// pointwise is two norms (4 h), two residual sums (6 h), rope and the activation of each token.
func (t *machine) pointwise(m *llm.Model, tokens float64) float64 {
	values := 10*m.Hidden + 2*(m.QHeads+m.KVHeads)*m.HeadDim + 3*m.FFN
	return t.pointwiseLaunch + tokens*2*float64(values)/t.pointwiseRate
}

// prefill is causal attention: t = launch(q) + max(FLOPs/rate(q), bytes/HBM).
func (t *machine) prefill(m *llm.Model, q, prefix, block float64) float64 {
	flops := 4 * float64(m.QHeads*m.HeadDim) * q * (prefix + q/2)
	read := (q + prefix) * kvToken(m) / t.hbm
	copies, own := 0.0, 0.0 // of an SM, of a CTA
	if prefix > 0 {
		tiles, each := math.Ceil(q/128)*float64(m.QHeads), t.prefillCopy*2*(prefix+q/2)/block
		copies, own = math.Ceil(tiles/fakeSMs)*each, math.Ceil(tiles/(2*fakeSMs))*2*each
	}
	return max(t.launchOf(q)+max(math.Hypot(flops/t.rateOf(q), copies), read), own)
}

func (t *machine) launchOf(q float64) float64 { return t.prefillLaunch + q*t.prefillToken }

func (t *machine) rateOf(q float64) float64 { return t.prefillRate * q / (q + t.prefillHalf) }

// between is pointwise between the linears of its layer, whose results are partly in the L2.
func (t *machine) between(m *llm.Model, tokens float64) float64 {
	all := t.pointwise(m, tokens)
	if tokens > inPlaceTokens {
		return all
	}
	return t.pointwiseLaunch + 0.9*(all-t.pointwiseLaunch)
}

// denseDecode is t = launch + g splits merge + bytes/rate: whole contexts are split until the
// lists fill the card, in parts of 128 tokens at least.
func (t *machine) denseDecode(m *llm.Model, batch, tokens float64) float64 {
	lists, group := batch*float64(m.KVHeads), float64(m.QHeads/m.KVHeads)
	splits := max(1, min(math.Ceil(tokens/batch/128), math.Floor(fakeCTAs/lists)))
	return t.dense.launch + group*splits*t.dense.merge + tokens*kvToken(m)/t.dense.rate
}

// sharedDecode is denseDecode of requests that begin alike: what they share is read from HBM once,
// all bytes from the L2, which overlaps with it in part.
func (t *machine) sharedDecode(m *llm.Model, batch, tokens, shared float64) float64 {
	all := batch * tokens * kvToken(m)
	once := all - (batch-1)*shared*kvToken(m)
	read := math.Sqrt(math.Pow(once/t.dense.rate, 2) + math.Pow(all/t.l2, 2))
	return t.denseDecode(m, batch, batch*tokens) - all/t.dense.rate + read
}

// sparseDecode is denseDecode of the selected tokens, with figures of its own.
func (t *machine) sparseDecode(m *llm.Model, batch, tokens float64) float64 {
	of := *t
	of.dense = t.sparse
	return of.denseDecode(m, batch, tokens)
}

// scores returns the time to rank the digests of all requests' blocks, two vectors a block and KV
// head.
func (t *machine) scores(m *llm.Model, batch, blocks float64) float64 {
	return t.scoreLaunch + blocks*float64(m.KVHeads*2*2*m.HeadDim)/t.scoreRate
}
