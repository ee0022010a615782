package hw

import (
	"math"

	"github.com/sparseserve/sparseserve/sim"
)

// newScoring prices scoring of a block's metadata in all KV heads: two vectors for each query head.
func newScoring(p *Profile, m *Model) memoryBound {
	bytes := float64(int64(m.KVHeads) * m.MetaBytesPerBlock())
	return newMemoryBound(p, m, p.Scoring, bytes, func(w *sim.Work) int64 { return w.ScoredBlocks })
}

// searchedFrom is the number of blocks that the scoring kernel ranks without a search
// (cuda/topk.cuh).
const searchedFrom = 128

// ScoringSearches returns 1 if the scoring kernel searches lists of the given blocks, else 0.
func ScoringSearches(blocks float64) float64 {
	if blocks > searchedFrom {
		return 1
	}
	return 0
}

// UnclusteredScoring returns the multiple of the unclustered cost for the given lists, with ctas
// concurrent CTAs on the card.
func UnclusteredScoring(ctas, lists float64) float64 {
	if 2*lists <= ctas {
		return 0
	}
	return math.Sqrt(2 * lists / ctas)
}
