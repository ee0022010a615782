package calibrate

import (
	"math"

	"sparseserve/hw"
)

// livePool is a layer's part of the KV pool in the points whose pages lie
// anywhere: 20 GiB shared by 32 layers.
const livePool = 640 * mib

// unevenContexts are the contexts of a batch in tokens, of whole blocks: a
// geometric row whose last is `spread` times its first, with the given mean.
func unevenContexts(batch, mean, spread int64) []int64 {
	shares, sum := make([]float64, batch), 0.0
	for i := range shares {
		shares[i] = 1
		if batch > 1 {
			shares[i] = math.Pow(float64(spread), float64(i)/float64(batch-1))
		}
		sum += shares[i]
	}
	contexts := make([]int64, batch)
	for i, share := range shares {
		blocks := math.Round(share / sum * float64(batch*mean) / blockTokens)
		contexts[i] = int64(max(1, blocks)) * blockTokens
	}
	return contexts
}

// contextsOf are those of a point.
func contextsOf(at Point) []int32 {
	var all []int32
	for _, c := range unevenContexts(at.At("batch"), at.At("context_tokens"), at.At("spread")) {
		all = append(all, int32(c))
	}
	return all
}

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
