package calibrate

import (
	"fmt"
	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/reference"
	"math"
	"slices"
)

// setupSelect readies scores and top-k over the digests of whole contexts.
func (g *gpuBench) setupSelect(s *cuda.Session, p Point) (*setup, error) {
	m, err := shapeModel(p.Shape)
	if err != nil {
		return nil, err
	}
	d, batch := int64(m.HeadDim), p.At("batch")
	blocks, k, units := p.At("context_tokens")/blockTokens, p.At("budget_tokens")/blockTokens, batch*int64(m.KVHeads)
	first, count := make([]int64, units), make([]int32, units)
	for u := range first {
		first[u], count[u] = int64(u)*blocks, int32(blocks)
	}
	a := &cuda.SelectArgs{
		Scores: cuda.ScoresArgs{Batch: int32(batch), HeadsQ: int32(m.QHeads), HeadsKV: int32(m.KVHeads), HeadDim: int32(d), ScoreStride: int32(blocks), MaxBlocks: int32(blocks)},
		TopK:   cuda.TopKArgs{Units: int32(units), ScoreStride: int32(blocks), ListStride: int32(k), K: int32(k), Sink: 2, Window: 2},
	}
	set := func(p *cuda.Ptr, get func() (cuda.Ptr, error)) {
		if err == nil {
			*p, err = get()
		}
	}
	set(&a.Scores.Q, func() (cuda.Ptr, error) { return g.random(s, batch*int64(m.QHeads)*d) })
	set(&a.Scores.Meta, func() (cuda.Ptr, error) { return g.digests(s, units*blocks, d) })
	set(&a.Scores.First, func() (cuda.Ptr, error) { return upload(g, s, first) })
	set(&a.Scores.Count, func() (cuda.Ptr, error) { return upload(g, s, count) })
	set(&a.Scores.Scores, func() (cuda.Ptr, error) { return g.zeros(s, 4*units*blocks) })
	set(&a.TopK.List, func() (cuda.Ptr, error) { return g.poisoned(s, 4*units*k) })
	set(&a.TopK.Count, func() (cuda.Ptr, error) { return g.poisoned(s, 4*units) })
	set(&a.Arrived, func() (cuda.Ptr, error) { return g.zeros(s, 4*units) })
	a.TopK.Scores, a.TopK.Blocks = a.Scores.Scores, a.Scores.Count
	if err != nil {
		return nil, err
	}
	return &setup{bench: cuda.Bench{Calls: []cuda.Operation{a}, FlushL2: true}, verify: func(s *cuda.Session) error {
		if err := s.Launch(a, 0); err != nil {
			return err
		}
		return checkSelect(s, a, g.r.Int64N(units))
	}}, nil
}

// digests returns the digests of random blocks: scores count on hi >= lo. Some
// thousand blocks serve all of them.
func (g *gpuBench) digests(s *cuda.Session, count, d int64) (cuda.Ptr, error) {
	const distinct = 4096
	slot, dst := make([]int32, count), make([]int64, count)
	for i := range slot {
		slot[i], dst[i] = int32(g.r.IntN(distinct)), int64(i)
	}
	a := &cuda.DigestArgs{Count: count, HeadDim: int32(d), BlockTokens: blockTokens}
	var err error
	if a.Meta, err = g.poisoned(s, 2*count*2*d); err != nil {
		return 0, err
	}
	if a.Pool, err = g.random(s, distinct*2*blockTokens*d); err != nil {
		return 0, err
	}
	if a.Slot, err = upload(g, s, slot); err != nil {
		return 0, err
	}
	if a.Dst, err = upload(g, s, dst); err != nil {
		return 0, err
	}
	return a.Meta, s.Launch(a, 0)
}

// checkSelect scores one unit's blocks anew. The kernel adds in another order,
// so a block may be chosen whose score is less than the least of the reference's
// choice by a rounding, and no more.
func checkSelect(s *cuda.Session, a *cuda.SelectArgs, unit int64) error {
	d, n, group := int64(a.Scores.HeadDim), int64(a.Scores.MaxBlocks), int64(a.Scores.HeadsQ/a.Scores.HeadsKV)
	q, err := floats(s, a.Scores.Q+cuda.Ptr(2*unit*group*d), group*d)
	if err != nil {
		return err
	}
	meta, err := floats(s, a.Scores.Meta+cuda.Ptr(2*unit*n*2*d), n*2*d)
	if err != nil {
		return err
	}
	scores := make([]float64, n)
	for i := range scores {
		digest := meta[int64(i)*2*d:]
		for h := range group {
			scores[i] += reference.Score(q[h*d:(h+1)*d], digest[:d], digest[d:2*d]) / float64(group)
		}
	}
	want := reference.TopK(scores, int(a.TopK.K), int(a.TopK.Sink), int(a.TopK.Window))
	got := make([]int32, a.TopK.K)
	if err := cuda.Download(s, got, a.TopK.List+cuda.Ptr(4*unit*int64(a.TopK.ListStride))); err != nil {
		return err
	}
	slack := 1e-3 * (slices.Max(scores) - slices.Min(scores))
	for i, w := range want {
		g := got[i]
		if g < 0 || int64(g) >= n || slices.Contains(got[:i], g) {
			return fmt.Errorf("unit %d: choice %d is block %d", unit, i, g)
		}
		if !(math.Abs(scores[g]-scores[w]) <= slack) {
			return fmt.Errorf("unit %d: choice %d is block %d of score %.4g, want block %d of %.4g", unit, i, g, scores[g], w, scores[w])
		}
	}
	return nil
}
