package reference

import "math"

// Round is what a value becomes when it is stored between two steps: Exact, or the rounding of a
// lower precision.
type Round func(float64) float64

// Exact stores a value as it is.
func Exact(x float64) float64 { return x }

// RMSNorm returns r(r(x / sqrt(mean x^2 + eps)) * weight) of one row.
func RMSNorm(x, weight []float64, eps float64, r Round) []float64 {
	out := make([]float64, len(x))
	inverse := 1 / math.Sqrt(dot(x, x)/float64(len(x))+eps)
	for i := range x {
		out[i] = r(r(x[i]*inverse) * weight[i])
	}
	return out
}

// Rope returns a head rotated by its token's angles, angle[d] turning dimensions d and d +
// len(angle).
func Rope(head, angle []float64, r Round) []float64 {
	half := len(angle)
	out := make([]float64, 2*half)
	for d, a := range angle {
		c, s := r(math.Cos(a)), r(math.Sin(a))
		x, y := head[d], head[d+half]
		out[d], out[d+half] = r(r(x*c)-r(y*s)), r(r(y*c)+r(x*s))
	}
	return out
}

// SiluMul returns r(r(silu(gate)) * up) for x = gate, then up.
func SiluMul(x []float64, r Round) []float64 {
	out := make([]float64, len(x)/2)
	for i := range out {
		gate, up := x[i], x[len(out)+i]
		out[i] = r(r(gate/(1+math.Exp(-gate))) * up)
	}
	return out
}

// Argmax returns the lowest index of the largest value; NaN never wins, and without a value above
// -inf the index is 0.
func Argmax(x []float64) int {
	best, at := math.Inf(-1), 0
	for i, v := range x {
		if v > best {
			best, at = v, i
		}
	}
	return at
}
