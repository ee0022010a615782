package reference_test

import (
	"fmt"

	"github.com/sparseserve/sparseserve/cuda/reference"
)

// A block is selected by its digest: keys of each block become bounds (hi, lo), a query scores
// the bounds, and the best k blocks are attended to, the last one, which is being filled, always.
func ExampleTopK() {
	const dim = 2
	blocks := [][]float64{ // keys [tokens][dim]
		{4, 0, 2, 0},
		{-1, 3, -3, 1},
		{0, 0, 1, 1},
		{0, -1, 0, -1},
	}
	query := []float64{1, 0.5}
	var scores []float64
	for _, keys := range blocks {
		hi, lo := reference.Digest(keys, dim)
		scores = append(scores, reference.Score(query, hi, lo))
	}
	fmt.Println("scores:", scores)
	fmt.Println("selected:", reference.TopK(scores, 3, 0, 1))
	// Output:
	// scores: [4 0.5 1.5 -0.5]
	// selected: [3 0 2]
}
