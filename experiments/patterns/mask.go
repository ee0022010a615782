package patterns

import (
	"cmp"
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/sim/pattern"
)

// mask calls keep for the ranges of keys that a query row attends to, up to itself.
type mask func(row int, keep func(from, to int))

// maskOf estimates the mask of a pattern for a head, as its kernel does.
func maskOf(h *Head, p pattern.Head) mask {
	switch p.Kind {
	case pattern.VerticalSlash:
		return verticalSlash(h, p.A, p.B)
	case pattern.BlockSparse:
		return blockSparse(h, p.A)
	}
	return func(row int, keep func(from, to int)) { // A-shape
		window := max(0, row+1-p.B)
		keep(0, min(p.A, window))
		keep(window, row+1)
	}
}

// verticalSlash keeps the columns and diagonals with most of the attention of the last 64 queries
// (Algorithm 2). A block of rows keeps the 64 columns that each diagonal crosses.
func verticalSlash(h *Head, verticals, slashes int) mask {
	n := h.Tokens()
	column, slash := make([]float64, n), make([]float64, n) // slash o: key = row - o
	for row := n - pattern.BlockTokens; row < n; row++ {
		for j, w := range softmaxRow(h, row) {
			column[j] += w
			slash[row-j] += w
		}
	}
	for i := range pattern.KeptLines {
		column[i], slash[i] = math.Inf(1), math.Inf(1)
	}
	columns, offsets := top(column, verticals), top(slash, slashes)
	slices.Sort(columns)
	return func(row int, keep func(from, to int)) {
		first := row / pattern.BlockTokens * pattern.BlockTokens
		kept := make([]bool, row+1)
		for _, o := range offsets {
			for j := max(0, first-o); j < first-o+pattern.BlockTokens && j <= row; j++ {
				kept[j] = true
			}
		}
		for _, j := range columns {
			if j > row {
				break
			}
			kept[j] = true
		}
		runs(kept, keep)
	}
}

// blockSparse keeps for each block of queries the blocks of keys whose means match best (Algorithm
// 3), including its own.
func blockSparse(h *Head, blocks int) mask {
	q, k := pooled(h.Q, h.D), pooled(h.K, h.D)
	scale := 1 / math.Sqrt(float64(h.D))
	return func(row int, keep func(from, to int)) {
		own := row / pattern.BlockTokens
		scores := make([]float64, own+1)
		for b := range scores {
			for i, x := range q[own] {
				scores[b] += x * k[b][i] * scale
			}
		}
		scores[own] = math.Inf(1)
		kept := make([]bool, row+1)
		for _, b := range top(scores, blocks) {
			for j := b * pattern.BlockTokens; j < (b+1)*pattern.BlockTokens && j <= row; j++ {
				kept[j] = true
			}
		}
		runs(kept, keep)
	}
}

// pooled returns the means of blocks of rows.
func pooled(rows []float32, d int) [][]float64 {
	n := len(rows) / d
	means := make([][]float64, (n+pattern.BlockTokens-1)/pattern.BlockTokens)
	for b := range means {
		means[b] = make([]float64, d)
		from, to := b*pattern.BlockTokens, min(n, (b+1)*pattern.BlockTokens)
		for i := from; i < to; i++ {
			for j := range d {
				means[b][j] += float64(rows[i*d+j]) / float64(to-from)
			}
		}
	}
	return means
}

// top returns the indices of the k largest scores; at equal scores the smaller index comes first.
func top(scores []float64, k int) []int {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	return order[:min(k, len(order))]
}

// runs calls keep for each run of kept keys.
func runs(kept []bool, keep func(from, to int)) {
	for from := 0; from < len(kept); {
		if !kept[from] {
			from++
			continue
		}
		to := from
		for to < len(kept) && kept[to] {
			to++
		}
		keep(from, to)
		from = to
	}
}
