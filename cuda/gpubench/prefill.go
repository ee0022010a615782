package main

import (
	"fmt"
	"math"

	"github.com/sparseserve/sparseserve/cuda"
)

// chunk is a prefill's shape.
type chunk struct{ tokens, prefix, headsQ, headsKV int }

func (c chunk) String() string {
	return fmt.Sprintf("%d tokens, prefix %d, %d/%d heads", c.tokens, c.prefix, c.headsQ, c.headsKV)
}

// prefillArgs has q, k and v as [token][head][d].
func (b *bench) prefillArgs(c chunk) *cuda.PrefillArgs {
	rowQ, rowKV := c.headsQ*headDim, c.headsKV*headDim
	all := c.tokens + c.prefix
	return &cuda.PrefillArgs{
		Q: b.random(c.tokens * rowQ), K: b.random(all * rowKV), V: b.random(all * rowKV),
		Out:          b.random(c.tokens * rowQ),
		QTokenStride: int64(rowQ), QHeadStride: headDim,
		KTokenStride: int64(rowKV), KHeadStride: headDim,
		VTokenStride: int64(rowKV), VHeadStride: headDim,
		OutTokenStride: int64(rowQ), OutHeadStride: headDim,
		QTokens: int32(c.tokens), Prefix: int32(c.prefix),
		HeadsQ: int32(c.headsQ), HeadsKV: int32(c.headsKV), HeadDim: headDim,
		Scale: float32(1 / math.Sqrt(headDim)),
	}
}

// flops counts 2 products of 2 D operations for each (query, visible key); query i sees prefix + i
// + 1 keys.
func (c chunk) flops() float64 {
	tokens, prefix := float64(c.tokens), float64(c.prefix)
	return 4 * headDim * float64(c.headsQ) * (tokens*prefix + tokens*(tokens+1)/2)
}

// prefill times chunks of tensors; with a long prefix also the same with keys and values in blocks
// of random slots, alternating.
func prefill(b *bench) {
	for _, c := range []chunk{
		{2048, 0, 32, 32}, {8192, 0, 32, 32}, {32768, 0, 32, 32}, {32768, 0, 32, 8},
		{512, 8192, 32, 32}, {512, 32768, 32, 32}, {2048, 32768, 32, 32},
		{512, 32768, 32, 8}, {2048, 32768, 32, 8},
	} {
		tensors := b.prefillArgs(c)
		forms := []*cuda.PrefillArgs{tensors}
		if c.prefix == 32768 {
			paged := *tensors
			blocks := (c.tokens + c.prefix) / blockTokens
			paged.TableStride, paged.BlockTokens = int32(blocks), blockTokens
			paged.Pool = b.random(c.headsKV * blocks * blockBytes / 2)
			paged.Table = upload(b, b.order(c.headsKV*blocks))
			forms = []*cuda.PrefillArgs{tensors, &paged, tensors, &paged}
		}
		for _, a := range forms {
			what := "prefill of " + c.String()
			if a.Table != 0 {
				what += ", blocks"
			}
			t := b.time(8, a)
			row(what, t, "%.0f TFLOP/s", c.flops()/t.median/1e9)
		}
		b.free()
	}
}
