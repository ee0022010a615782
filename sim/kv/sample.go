package kv

import (
	"sort"

	"github.com/sparseserve/sparseserve/sim/des"
)

// Sample is the set of (layer, KV head) groups that a cache simulates exactly. Counts over the
// sample are scaled by 1/Rate (spatial sampling: Waldspurger et al., "Cache Modeling and
// Optimization using Miniature Simulations", 2017, and "Efficient MRC Construction with
// SHARDS", FAST'15).
type Sample struct {
	Groups []int32 // global group numbers layer*KVHeads + head, ascending
	Rate   float64 // len(Groups) / all groups
}

// FullSample returns every group.
func FullSample(g Geometry) Sample {
	s := Sample{Rate: 1, Groups: make([]int32, g.Groups())}
	for i := range s.Groups {
		s.Groups[i] = int32(i)
	}
	return s
}

// HashSample returns n groups spread evenly over the layers; a hash chooses the head in each.
// It returns all groups if n is at least their number.
func HashSample(g Geometry, n int, seed uint64) Sample {
	all := g.Groups()
	if n >= all {
		return FullSample(g)
	}
	s := Sample{Rate: float64(n) / float64(all)}
	taken := map[int32]bool{}
	for i := range n {
		layer := (2*i + 1) * g.Layers / (2 * n) // middle of the i-th of n strata
		for try := uint64(0); ; try++ {
			head := int(des.Hash(seed, uint64(i), try, 0x5a3b1e) % uint64(g.KVHeads))
			id := int32(layer*g.KVHeads + head)
			if !taken[id] {
				taken[id] = true
				s.Groups = append(s.Groups, id)
				break
			}
		}
	}
	sort.Slice(s.Groups, func(i, j int) bool { return s.Groups[i] < s.Groups[j] })
	return s
}
