package live_test

import (
	"fmt"
	"math"

	"github.com/sparseserve/sparseserve/cuda"
)

// near allows for fp16 roundings that fall differently in two orders of summation.
func near(got []cuda.Half, want []float64) error {
	var diff, size float64
	for i, w := range want {
		d := got[i].Float() - w
		diff, size = diff+d*d, size+w*w
	}
	if !(math.Sqrt(diff) <= 5e-3*math.Sqrt(size)) {
		return fmt.Errorf("logits are off by %.2g of their length", math.Sqrt(diff/size))
	}
	return nil
}
