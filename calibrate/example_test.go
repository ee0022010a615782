package calibrate_test

import (
	"fmt"
	"path/filepath"

	"github.com/sparseserve/sparseserve/calibrate"
)

// The committed samples of an H200 give its profile anew, without a GPU.
func ExampleRefit() {
	c, err := calibrate.Refit(filepath.Join("..", "hw", "kernels", "hopper.csv.gz"), "")
	if err != nil {
		fmt.Println(err)
		return
	}
	h2d := c.Profile.Link.H2D
	fmt.Printf("%s: %d fits, host to device %.1f %s\n", c.Profile.Name, len(c.Profile.Fits),
		h2d.Value, h2d.Unit)
	// Output: h200: 26 fits, host to device 55.3 GB/s
}
