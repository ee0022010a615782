package calibrate

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Median is the middle of some samples with its 95 % confidence interval, which comes from order
// statistics and so holds for any distribution: [x_(l), x_(n+1-l)] with the largest l for which
// P(Binomial(n, 1/2) < l) <= 2.5 %.
type Median struct {
	Value, Low, High float64
}

// medianOf returns the median. Fewer than 6 samples have no 95 % interval, so the interval is the
// whole range.
func medianOf(samples []float64) Median {
	x := slices.Sorted(slices.Values(samples))
	n := len(x)
	if n == 0 {
		return Median{math.NaN(), math.NaN(), math.NaN()}
	}
	m := Median{Value: (x[(n-1)/2] + x[n/2]) / 2, Low: x[0], High: x[n-1]}
	b := distuv.Binomial{N: float64(n), P: 0.5}
	for l := 1; l <= n/2 && b.CDF(float64(l-1)) <= 0.025; l++ {
		m.Low, m.High = x[l-1], x[n-l]
	}
	return m
}

// Spread is half the interval over the median.
func (m Median) Spread() float64 { return (m.High - m.Low) / 2 / m.Value }
