package calibrate

import (
	"math"

	"github.com/sparseserve/sparseserve/hw"
)

// unevenRounds is how many rounds each of some lists lasts, the shortest first,
// where the longest lasts the given number: the cube of a list's rank. A list
// lasts about a quarter of the longest then, as with LongBench's prompts, where
// few heads attend to much.
func unevenRounds(lists, longest int64) []int64 {
	rounds := make([]int64, lists)
	for i := range rounds {
		rank := float64(i+1) / float64(lists)
		rounds[i] = max(1, int64(math.Ceil(rank*rank*rank*float64(longest)-1e-9)))
	}
	return rounds
}

// longestRounds are those of a point's longest list.
func longestRounds(at Point) int64 {
	return at.At("longest_tokens") / blockTokens / at.At("micro_blocks")
}

// reach is how many lists of a point attend to something in each round.
func reach(at Point, m *hw.Model) []int {
	out := make([]int, longestRounds(at))
	for _, n := range unevenRounds(at.At("batch")*int64(m.KVHeads), longestRounds(at)) {
		for i := range n {
			out[i]++
		}
	}
	return out
}
