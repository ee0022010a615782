package reference

import (
	"cmp"
	"slices"
)

// TopK returns the k best of the scores' indices, best first, equal scores by lower index. The
// first sink and the last window indices come before all others, in order, and count towards k.
func TopK(scores []float64, k, sink, window int) []int32 {
	n := len(scores)
	forced := func(i int32) bool { return int(i) < sink || int(i) >= n-window }
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		switch {
		case forced(a) && forced(b):
			return 0
		case forced(a):
			return -1
		case forced(b):
			return 1
		}
		return cmp.Compare(scores[b], scores[a])
	})
	return order[:min(k, n)]
}
