package cuda

import "math"

// Half is an IEEE binary16 value, as the kernels read it.
type Half uint16

// HalfOf rounds to nearest, ties to even.
func HalfOf(x float64) Half {
	var sign Half
	if math.Signbit(x) {
		sign = 0x8000
	}
	switch a := math.Abs(x); {
	case math.IsNaN(x):
		return sign | 0x7e00
	case a >= 65520: // rounds to infinity
		return sign | 0x7c00
	case a < 0x1p-14: // subnormal: multiples of 2^-24
		return sign | Half(math.RoundToEven(a*0x1p24))
	default:
		exponent := math.Ilogb(a)
		mantissa := math.RoundToEven(math.Ldexp(a, 10-exponent)) // 1024 to 2048; the sum below carries 1024 into the exponent
		return sign | Half((exponent+14)<<10+int(mantissa))
	}
}

// Float returns the value exactly.
func (h Half) Float() float64 {
	sign, exponent, mantissa := 1.0, int(h>>10&31), float64(h&0x3ff)
	if h&0x8000 != 0 {
		sign = -1
	}
	switch exponent {
	case 0:
		return sign * mantissa * 0x1p-24
	case 31:
		if mantissa != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1024+mantissa, exponent-25)
}
