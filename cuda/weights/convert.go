package weights

import (
	"math"

	"github.com/sparseserve/sparseserve/cuda"
)

// halfOf is cuda.HalfOf for float32, on bits, because a model has billions of weights: to nearest,
// ties to even.
func halfOf(x float32) cuda.Half {
	bits := math.Float32bits(x)
	sign, rest := cuda.Half(bits>>16&0x8000), bits&0x7fffffff
	switch {
	case rest > 0x7f800000: // NaN
		return sign | 0x7e00
	case rest >= 0x477ff000: // 65520 and above
		return sign | 0x7c00
	case rest < 0x33000000: // below 2^-25
		return sign
	case rest < 0x38800000: // below 2^-14: multiples of 2^-24
		shift := 126 - rest>>23
		return sign | cuda.Half(nearest(rest&0x7fffff|0x800000, shift))
	}
	return sign | cuda.Half(nearest(rest-0x38000000, 13)) // the exponent's bias is 112 less
}

// nearest is x / 2^shift, ties to even, for a shift of 1 to 24. It has no branches: half of all
// weights round up.
func nearest(x, shift uint32) uint32 {
	odd := x >> shift & 1
	return (x + 1<<(shift-1) - 1 + odd) >> shift
}

// infinite is true of infinities and NaNs.
func infinite(h cuda.Half) bool { return h&0x7c00 == 0x7c00 }
