package calibrate

import (
	"math"

	"github.com/sparseserve/sparseserve/hw"
)

// kvToken is the bytes of a token's K and V in one layer, fp16.
func kvToken(m *hw.Model) float64 { return float64(2 * 2 * m.KVHeads * m.HeadDim) }

// layerWeights returns the number of weights in a layer's four matrices.
func layerWeights(m *hw.Model) float64 {
	h, q, kv, f := m.Hidden, m.QHeads*m.HeadDim, m.KVHeads*m.HeadDim, m.FFN
	return float64(h*(q+2*kv) + q*h + 3*h*f)
}

// matrices returns the time to read and multiply fp16 weights. Reading and multiplying overlap, but
// not fully where they take about the same time, so their cubes are summed.
func (t *machine) matrices(weights, tokens float64) float64 {
	return math.Cbrt(math.Pow(2*weights/t.gemmRead, 3) + math.Pow(2*tokens*weights/t.gemmCompute, 3))
}

func (t *machine) linears(m *hw.Model, tokens float64) float64 {
	return t.gemmLaunch + t.matrices(layerWeights(m), tokens)
}

// pointwise is two norms (4 h), two residual sums (6 h), rope and the activation of each token.
func (t *machine) pointwise(m *hw.Model, tokens float64) float64 {
	values := 10*m.Hidden + 2*(m.QHeads+m.KVHeads)*m.HeadDim + 3*m.FFN
	return t.pointwiseLaunch + tokens*2*float64(values)/t.pointwiseRate
}

// prefill is causal attention: t = launch(q) + max(FLOPs/rate(q), bytes/HBM).
func (t *machine) prefill(m *hw.Model, q, prefix, block float64) float64 {
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
func (t *machine) between(m *hw.Model, tokens float64) float64 {
	all := t.pointwise(m, tokens)
	if tokens > inPlaceTokens {
		return all
	}
	return t.pointwiseLaunch + 0.9*(all-t.pointwiseLaunch)
}

// denseDecode is t = launch + g splits merge + bytes/rate: whole contexts are split until the
// lists fill the card, in parts of 128 tokens at least.
func (t *machine) denseDecode(m *hw.Model, batch, tokens float64) float64 {
	lists, group := batch*float64(m.KVHeads), float64(m.QHeads/m.KVHeads)
	splits := max(1, min(math.Ceil(tokens/batch/128), math.Floor(fakeCTAs/lists)))
	return t.dense.launch + group*splits*t.dense.merge + tokens*kvToken(m)/t.dense.rate
}

// sharedDecode is denseDecode of requests that begin alike: what they share is read from HBM once,
// all bytes from the L2, which overlaps with it in part.
func (t *machine) sharedDecode(m *hw.Model, batch, tokens, shared float64) float64 {
	all := batch * tokens * kvToken(m)
	once := all - (batch-1)*shared*kvToken(m)
	read := math.Sqrt(math.Pow(once/t.dense.rate, 2) + math.Pow(all/t.l2, 2))
	return t.denseDecode(m, batch, batch*tokens) - all/t.dense.rate + read
}

// sparseDecode is t = launch + (waves - 1) wave + g [splits > 1] merge + bytes/rate, with the
// splits, 64 and a quarter of a list's blocks at most, for which waves (blocks of a CTA + 4)
// is least (cuda/decode.cu).
func (t *machine) sparseDecode(m *hw.Model, batch, tokens float64) float64 {
	lists, group := batch*float64(m.KVHeads), float64(m.QHeads/m.KVHeads)
	blocks := math.Ceil(tokens / batch / 32)
	least, waves, merged := math.Inf(1), 0.0, 0.0
	for splits := 1.0; splits == 1 || splits <= min(64, math.Ceil(blocks/4)); splits++ {
		w := math.Ceil(lists * splits / fakeCTAs)
		if cost := w * (math.Ceil(blocks/splits) + 4); cost < least {
			least, waves, merged = cost, w, min(1, splits-1)
		}
	}
	return t.sparse.launch + (waves-1)*t.sparse.wave + group*merged*t.sparse.merge +
		tokens*kvToken(m)/t.sparse.rate
}

// scores returns the time to rank the digests of all requests' blocks, two vectors a block and KV
// head. A list of more than 128 blocks needs a search.
func (t *machine) scores(m *hw.Model, batch, blocks float64) float64 {
	lists := batch * float64(m.KVHeads)
	s := t.scoreLaunch + blocks*float64(m.KVHeads*2*2*m.HeadDim)/t.scoreRate
	if blocks/batch > 128 {
		s += t.search
	}
	if 2*lists > fakeCTAs {
		s += math.Sqrt(2*lists/fakeCTAs) * t.crowded
	}
	return s
}

// psaPoint has equal lists, in one launch or a launch a round, or lists that end in turn.
func (t *machine) psaPoint(p Point, m *hw.Model) float64 {
	batch, micro := float64(p.At("batch")), float64(p.At("micro_blocks"))
	lists := batch * float64(m.KVHeads)
	var rounds []float64 // bytes
	if p.Probe == probePSAUneven {
		for _, n := range reach(p, m) {
			rounds = append(rounds, float64(n)*micro*32*kvToken(m)/float64(m.KVHeads))
		}
		return t.progressive(lists, rounds, 1)
	}
	n := math.Ceil(float64(p.At("budget_tokens")) / 32 / micro)
	for range int(n) {
		rounds = append(rounds, batch*float64(p.At("budget_tokens"))*kvToken(m)/n)
	}
	if p.Probe == probePSALaunches {
		return t.progressive(lists, rounds, n)
	}
	return t.progressive(lists, rounds, 1)
}

// progressive is t = launch + (launches - 1) relaunch + sum over
// rounds of max(round, bytes/rate); of fewer lists than SMs, rounds are proportionally shorter.
func (t *machine) progressive(lists float64, rounds []float64, launches float64) float64 {
	s := t.psa.launch + (launches-1)*t.psa.relaunch
	for _, bytes := range rounds {
		s += max(t.psa.round*min(1, lists/fakeSMs), bytes/t.psa.rate)
	}
	return s
}
