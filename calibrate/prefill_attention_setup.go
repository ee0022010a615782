package calibrate

import (
	"math"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/hw/llm"
)

func (g *gpuRun) setupPrefill(p Point) *work {
	block := int64(blockTokens)
	if p.Probe == probePrefillBlocks {
		block = p.At("block_tokens")
	}
	return g.prefill(g.model(p.Shape), p.At("query_tokens"), p.At("prefix_tokens"), block)
}

// prefill prepares the attention of a prompt's chunk after a prefix in one layer. Without prefix,
// keys and values are contiguous, head by head (in the live loop token by token, interleaved with
// queries). With a prefix, keys and values of prefix and chunk are in random blocks of `block`
// tokens, as rope writes them.
func (g *gpuRun) prefill(m *llm.Model, query, prefix, block int64) *work {
	d, hq, hk := int64(m.HeadDim), int64(m.QHeads), int64(m.KVHeads)
	contiguous := query
	if prefix > 0 {
		contiguous = 0
	}
	a := &cuda.PrefillArgs{
		Q: g.random(query * hq * d), K: g.random(max(2, contiguous*hk*d)),
		V:   g.random(max(2, contiguous*hk*d)),
		Out: g.poisoned(2 * query * hq * d), QTokens: int32(query), Prefix: int32(prefix),
		QTokenStride: hq * d, QHeadStride: d, OutTokenStride: hq * d, OutHeadStride: d,
		KTokenStride: d, KHeadStride: contiguous * d, VTokenStride: d, VHeadStride: contiguous * d,
		HeadsQ: int32(hq), HeadsKV: int32(hk), HeadDim: int32(d),
		Scale: float32(1 / math.Sqrt(float64(d))),
	}
	var slots []int32
	if prefix > 0 {
		blocks := (prefix + query + block - 1) / block
		slots = g.permuted(blocks * hk)
		a.Pool, a.Table = g.random(int64(len(slots))*2*block*d), upload(g, slots)
		a.TableStride, a.BlockTokens = int32(blocks), int32(block)
	}
	return &work{calls: []cuda.Operation{a}, verify: func() {
		g.launch(a)
		rows := []int64{query - 1}
		if prefix+query <= 8192 {
			rows = append(rows, 0, g.r.Int64N(query))
		}
		for _, row := range rows {
			g.checkPrefill(a, slots, g.r.Int64N(hq), row)
		}
	}}
}

// checkPrefill recomputes a token's row of a head.
func (g *gpuRun) checkPrefill(a *cuda.PrefillArgs, slots []int32, head, token int64) {
	d, seen := int64(a.HeadDim), int64(a.Prefix)+token+1
	kv := head / int64(a.HeadsQ/a.HeadsKV)
	g.attentionOf(a, head, token, func(add func(k, v []float64)) {
		if a.Table == 0 {
			add(g.floats(a.K+cuda.Ptr(2*kv*a.KHeadStride), seen*d),
				g.floats(a.V+cuda.Ptr(2*kv*a.VHeadStride), seen*d))
			return
		}
		for at, tokens := int64(0), int64(a.BlockTokens); at < seen; at += tokens {
			slot := int64(slots[kv*int64(a.TableStride)+at/tokens])
			block := g.floats(a.Pool+cuda.Ptr(2*slot*2*tokens*d), 2*tokens*d)
			n := min(tokens, seen-at) * d
			add(block[:n], block[tokens*d:tokens*d+n])
		}
	})
}

// attentionOf recomputes the attention of a token's row of a head to what keys adds.
func (g *gpuRun) attentionOf(a *cuda.PrefillArgs, head, token int64,
	keys func(add func(k, v []float64))) {
	out := a.Out + cuda.Ptr(2*(token*a.OutTokenStride+head*a.OutHeadStride))
	query := a.Q + cuda.Ptr(2*(token*a.QTokenStride+head*a.QHeadStride))
	g.near(out, g.attention(query, int64(a.HeadDim), a.Scale, keys), "head %d, token %d", head, token)
}
