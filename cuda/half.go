package cuda

import (
	"math"
	"sync"
)

// Half is an IEEE binary16 value, as the kernels read it.
type Half uint16

// HalfOf rounds to nearest, ties to even.
func HalfOf(x float64) Half {
	bits := math.Float64bits(x)
	sign := Half(bits >> 48 & 0x8000)
	bits &^= 1 << 63
	switch a := math.Float64frombits(bits); {
	case a < 0x1p-14: // subnormal: multiples of 2^-24
		return sign | Half(math.RoundToEven(a*0x1p24))
	case a < 65520:
		bits -= (1023 - 15) << 52 // to binary16's bias
		// 42 bits of the mantissa go; the sum may carry into the exponent
		bits += 1<<41 - 1 + bits>>42&1
		return sign | Half(bits>>42)
	case math.IsNaN(x):
		return sign | 0x7e00
	}
	return sign | 0x7c00 // rounds to infinity
}

// Float returns the value exactly.
func (h Half) Float() float64 {
	sign, exponent, mantissa := 1.0, uint64(h>>10&31), float64(h&0x3ff)
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
	return sign * math.Float64frombits((exponent+1023-15)<<52|uint64(h&0x3ff)<<42)
}

// floatOf is a table of Half.Float for all 65,536 values, because tensors have many.
var floatOf = sync.OnceValue(func() *[1 << 16]float64 {
	var table [1 << 16]float64
	for i := range table {
		table[i] = Half(i).Float()
	}
	return &table
})

// Floats returns a tensor's values exactly.
func Floats(h []Half) []float64 {
	table, x := floatOf(), make([]float64, len(h))
	for i, v := range h {
		x[i] = table[v]
	}
	return x
}

// Rounded returns x as a Half stores it; it is a reference.Round.
func Rounded(x float64) float64 { return floatOf()[HalfOf(x)] }
