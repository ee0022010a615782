package dsa

import (
	"math"
	"slices"
)

// TopK picks the K blocks with the highest estimated scores, or all if there are fewer, in
// ascending order. Ties go to the earlier block. ArkVale, Quest, InfLLM and SparseServe select
// this way, and StreamingLLM (Xiao et al., ICLR 2024) with K = 0.
type TopK struct{ K int }

// Limit returns K.
func (p TopK) Limit() int { return p.K }

// AtOnce implements Policy.
func (p TopK) AtOnce(candidates int) int { return min(p.K, candidates) }

// Weighs returns false: the estimates suffice.
func (p TopK) Weighs() bool { return false }

// Picker implements Policy.
func (p TopK) Picker() Picker { return &topK{k: p.K} }

// topK finds the k largest of n scores. The k-th largest changes little from step to step, so a
// cut slightly below the last one keeps few more than k blocks. One branch-free pass finds
// these blocks; then the surplus is dropped.
type topK struct {
	k      int
	cut    int64   // rank of the last block picked in the last step
	margin int64   // distance of the next cut below it; 0 = no last step
	some   []int64 // ranks above the cut
	ranks  []int64 // scratch of drop
}

// rank is a sort key: higher scores rank higher, and ties go to the earlier block. It joins the
// score's bits, as an integer of the same order, with the complement of the block index.
func rank(s float32, block int) int64 {
	b := int64(int32(math.Float32bits(s)))
	b ^= b >> 63 & 0x7fffffff
	return b<<16 | int64(math.MaxUint16-block)
}

const noRank = math.MinInt64 / 4

// Pick implements Picker in O(candidates).
func (p *topK) Pick(v *View, dst []uint16) ([]uint16, int) {
	dst = p.pick(v.Critical, dst[:0])
	return dst, len(dst)
}

func (p *topK) pick(scores []float32, dst []uint16) []uint16 {
	if p.k == 0 {
		return dst
	}
	if len(scores) <= p.k {
		for i := range scores {
			dst = append(dst, uint16(i))
		}
		return dst
	}
	if len(p.some) <= len(scores) {
		p.some = make([]int64, len(scores)+1)
	}
	n := 0
	if p.margin > 0 {
		n = p.above(scores, p.cut-p.margin)
	}
	switch {
	case n < p.k: // no last step, or the scores have fallen
		p.margin = max(2*p.margin, 1<<36)
		n = p.above(scores, noRank)
	case n > p.k+p.k/8+4:
		p.margin -= p.margin / 8
	}
	some := p.some[:n]
	p.cut = p.drop(some, n-p.k)
	for _, r := range some {
		if r > p.cut {
			dst = append(dst, uint16(math.MaxUint16-r&math.MaxUint16))
		}
	}
	return dst
}

// above collects the ranks greater than cut.
func (p *topK) above(scores []float32, cut int64) int {
	n, some := 0, p.some[:len(scores)+1]
	for b, s := range scores {
		r := rank(s, b)
		some[n] = r
		n += int(uint64(cut-r) >> 63) // 1 when r > cut
	}
	return n
}

// drop returns the surplus-th smallest rank; ranks above it are picked.
func (p *topK) drop(some []int64, surplus int) int64 {
	if surplus == 0 {
		return noRank
	}
	p.ranks = append(p.ranks[:0], some...)
	partition(p.ranks, surplus)
	return slices.Max(p.ranks[:surplus])
}
