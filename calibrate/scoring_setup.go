package calibrate

import (
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/reference"
	"github.com/sparseserve/sparseserve/hw/llm"
)

// setupSelect prepares scores and top-k over the digests of whole contexts.
func (g *gpuRun) setupSelect(p Point) *work {
	m, batch := g.model(p.Shape), p.At("batch")
	a := g.selection(m, batch, p.At("context_tokens")/blockTokens, p.At("budget_tokens")/blockTokens)
	units := batch * int64(m.KVHeads)
	return &work{calls: []cuda.Operation{a}, verify: func() {
		g.launch(a)
		g.checkSelect(a, g.r.Int64N(units))
	}}
}

// selection selects k of the given number of blocks for each KV head of a batch.
func (g *gpuRun) selection(m *llm.Model, batch, blocks, k int64) *cuda.SelectArgs {
	d, units := int64(m.HeadDim), batch*int64(m.KVHeads)
	first, count := make([]int64, units), make([]int32, units)
	for u := range first {
		first[u], count[u] = int64(u)*blocks, int32(blocks)
	}
	a := &cuda.SelectArgs{
		Scores: cuda.ScoresArgs{
			Batch: int32(batch), HeadsQ: int32(m.QHeads), HeadsKV: int32(m.KVHeads), HeadDim: int32(d),
			ScoreStride: int32(blocks), MaxBlocks: int32(blocks),
			Q: g.random(batch * int64(m.QHeads) * d), Meta: g.digests(units*blocks, d),
			First: upload(g, first), Count: upload(g, count), Scores: g.zeros(4 * units * blocks),
		},
		TopK: cuda.TopKArgs{
			Units: int32(units), ScoreStride: int32(blocks), ListStride: int32(k),
			K: int32(k), Sink: 2, Window: 2,
			List: g.poisoned(4 * units * k), Count: g.poisoned(4 * units),
		},
		Arrived: g.zeros(4 * units),
	}
	a.TopK.Scores, a.TopK.Blocks = a.Scores.Scores, a.Scores.Count
	return a
}

// digests returns the digests of random blocks, because scores require hi >= lo. A few thousand
// distinct blocks are reused.
func (g *gpuRun) digests(count, d int64) cuda.Ptr {
	const distinct = 4096
	slot := make([]int32, count)
	for i := range slot {
		slot[i] = int32(g.r.IntN(distinct))
	}
	a := &cuda.DigestArgs{
		Count: count, HeadDim: int32(d), BlockTokens: blockTokens,
		Meta: g.poisoned(2 * count * 2 * d), Pool: g.random(distinct * 2 * blockTokens * d),
		Slot: upload(g, slot), Dst: upload(g, counted[int64](count)),
	}
	g.launch(a)
	return a.Meta
}

// checkSelect recomputes the scores of one unit's blocks. The kernel sums in another order, so a
// chosen block's score may be below the reference's by a rounding error.
func (g *gpuRun) checkSelect(a *cuda.SelectArgs, unit int64) {
	d, n := int64(a.Scores.HeadDim), int64(a.Scores.MaxBlocks)
	group := int64(a.Scores.HeadsQ / a.Scores.HeadsKV)
	q := g.floats(a.Scores.Q+cuda.Ptr(2*unit*group*d), group*d)
	meta := g.floats(a.Scores.Meta+cuda.Ptr(2*unit*n*2*d), n*2*d)
	scores := make([]float64, n)
	for i := range scores {
		digest := meta[int64(i)*2*d:]
		scores[i] = reference.Score(q, digest[:d], digest[d:2*d])
	}
	want := reference.TopK(scores, int(a.TopK.K), int(a.TopK.Sink), int(a.TopK.Window))
	list := a.TopK.List + cuda.Ptr(4*unit*int64(a.TopK.ListStride))
	got := download[int32](g, list, int64(a.TopK.K))
	slack := 1e-3 * (slices.Max(scores) - slices.Min(scores))
	for i, w := range want {
		b := got[i]
		if b < 0 || int64(b) >= n || slices.Contains(got[:i], b) {
			g.fail("unit %d: choice %d is block %d", unit, i, b)
			return
		}
		if !(math.Abs(scores[b]-scores[w]) <= slack) {
			g.fail("unit %d: choice %d is block %d of score %.4g, want block %d of %.4g",
				unit, i, b, scores[b], w, scores[w])
		}
	}
}
