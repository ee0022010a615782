package nearest_test

import (
	"fmt"

	"github.com/sparseserve/sparseserve/internal/nearest"
)

// Messages about an unknown name suggest the one that was meant.
func ExampleName() {
	known := []string{"rate", "window", "window_blocks"}
	fmt.Printf("%q %q %q\n", nearest.Name("windwo", known), nearest.Name("rat", known),
		nearest.Name("speed", known))
	// Output: "window" "rate" ""
}
