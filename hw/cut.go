package hw

import (
	"math"
	"slices"
)

// Constants of the dense decode kernel (cuda/pieces.cuh): warps of a CTA, tokens
// of a block, and by how many blocks the largest piece may be more than an equal
// share so that each CTA has one piece.
const (
	cutWarps  = 4
	cutTokens = 32
	cutSlack  = 4
)

// cut is how the dense decode kernel shares a batch's contexts among its CTAs.
type cut struct {
	whole bool    // each CTA has one piece
	parts float64 // pieces of the longest context
	over  float64 // blocks that the warp with most of them has more than the mean of those at work; 0 where CTAs have more pieces
}

// cutOf cuts contexts of so many tokens, each of so many KV heads, for so many
// CTAs at once: into whole pieces, of as few blocks as give every piece a CTA, if
// that is hardly more than an equal share, else into equal runs of all blocks,
// one unit's after the other's.
func cutOf(contexts []int32, heads, ctas int) cut {
	blocks := func(context int32) int { return (int(context) + cutTokens - 1) / cutTokens }
	total, longest := 0, 0
	for _, c := range contexts {
		total += heads * blocks(c)
		longest = max(longest, blocks(c))
	}
	least := max(cutWarps, (total+ctas-1)/ctas)
	for share := least; share <= least+cutSlack; share++ {
		pieces, most := 0, 0
		for _, c := range contexts {
			n := max(1, (blocks(c)+share-1)/share)
			pieces += heads * n
			most = max(most, (blocks(c)+n-1)/n)
		}
		if pieces <= ctas {
			even := float64(total) / float64(cutWarps*pieces)
			return cut{true, math.Ceil(float64(longest) / float64(share)), math.Ceil(float64(most)/cutWarps) - even}
		}
	}
	return cut{false, math.Floor(float64(longest*ctas) / float64(total)), 0}
}

// batchSeconds returns the time of a dense decode whose contexts are known: that
// of as many tokens in equal contexts, and
//
//	pages + g merge (parts - splits) + tail over, or + piece where CTAs have two pieces
//
// with the parts of the longest context and the splits of an equal one.
func (k *stream) batchSeconds(n, requests float64, contexts []int32) (t float64, outside bool) {
	t, outside = k.seconds(n, requests)
	lists := len(contexts) * int(k.heads)
	if n <= 0 || len(contexts) == 0 || k.ctas == 0 || k.tail+k.piece+k.pages == 0 {
		return t, outside
	}
	t += k.pages
	if lists > int(k.ctas) {
		return t, outside // CTAs have more than one piece with equal contexts too
	}
	c := cutOf(contexts, int(k.heads), int(k.ctas))
	t += k.group * k.merge * math.Max(0, c.parts-ListSplits(k.ctas, float64(lists), n/requests))
	if c.whole {
		return t + k.tail*c.over, outside
	}
	if slices.Max(contexts) != slices.Min(contexts) { // else no run need cross from one list to the next
		t += k.piece
	}
	return t, outside
}

// DenseBatchSeconds returns the time of one layer's decode attention to whole
// contexts, whose pages lie anywhere in the pool.
func (p *Profile) DenseBatchSeconds(m *Model, contexts []int32) float64 {
	k, sum := newDense(p, m), 0.0
	for _, c := range contexts {
		sum += float64(c)
	}
	t, _ := k.batchSeconds(sum, float64(len(contexts)), contexts)
	return t
}
