package hw

import (
	"math"

	"github.com/sparseserve/sparseserve/sim"
)

// newScoring prices a block's metadata in all KV heads: two vectors against each query head.
func newScoring(p *Profile, m *Model) memoryBound {
	bytes := float64(int64(m.KVHeads) * m.MetaBytesPerBlock())
	return newMemoryBound(p, m, p.Scoring, bytes, func(w *sim.Work) int64 { return w.ScoredBlocks })
}

// searchedFrom are the blocks that the scoring kernel ranks without a search (cuda/topk.cuh).
const searchedFrom = 128

// ScoringSearches returns whether the scoring kernel searches lists of so many blocks, 0 or 1.
func ScoringSearches(blocks float64) float64 {
	if blocks > searchedFrom {
		return 1
	}
	return 0
}

// UnclusteredScoring returns how often the unclustered cost of some lists counts, with so many CTAs
// at once on the card.
func UnclusteredScoring(ctas, lists float64) float64 {
	if 2*lists <= ctas {
		return 0
	}
	return math.Sqrt(2 * lists / ctas)
}
