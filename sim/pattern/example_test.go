package pattern_test

import (
	"fmt"

	"github.com/sparseserve/sparseserve/sim/pattern"
)

// What each pattern computes of a prompt's causal attention, at MInference's sizes.
func ExampleHead_Density() {
	for _, kind := range []pattern.Kind{pattern.AShape, pattern.VerticalSlash, pattern.BlockSparse} {
		h, _ := pattern.Published(kind)
		fmt.Printf("%s: %.3f of 8,192 tokens, %.3f of 131,072\n", h, h.Density(8192), h.Density(131072))
	}
	// Output:
	// a-shape (1024, 4096): 0.859 of 8,192 tokens, 0.077 of 131,072
	// vertical-slash (1000, 6096): 1.000 of 8,192 tokens, 0.183 of 131,072
	// block-sparse (100): 0.952 of 8,192 tokens, 0.095 of 131,072
}
