package reference

import "math"

// Digest returns the cuboid-mean digest of a block's keys [tokens][dim]: hi = c + r and lo = c - r
// with c = (max + min) / 2 and r = mean |k - c|, per dimension.
func Digest(keys []float64, dim int) (hi, lo []float64) {
	tokens := len(keys) / dim
	hi, lo = make([]float64, dim), make([]float64, dim)
	for d := range dim {
		least, most := math.Inf(1), math.Inf(-1)
		for t := range tokens {
			least, most = math.Min(least, keys[t*dim+d]), math.Max(most, keys[t*dim+d])
		}
		c, r := (most+least)/2, 0.0
		for t := range tokens {
			r += math.Abs(keys[t*dim+d] - c)
		}
		r /= float64(tokens)
		hi[d], lo[d] = c+r, c-r
	}
	return hi, lo
}

// Score returns the criticality of a block for a group of query heads q [group][dim]: the mean over
// heads of sum_d max(q_d hi_d, q_d lo_d).
func Score(q, hi, lo []float64) float64 {
	dim := len(hi)
	sum := 0.0
	for i, x := range q {
		sum += math.Max(x*hi[i%dim], x*lo[i%dim])
	}
	return sum / float64(len(q)/dim)
}
