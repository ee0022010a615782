package whatif

import (
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/internal/stats"
)

// Verdict is the answer to a threshold's question at one value.
type Verdict string

// Undecided is the verdict where the runs cannot tell.
const (
	Holds     Verdict = "holds"
	Fails     Verdict = "fails"
	Undecided Verdict = "undecided"
)

// positive judges a quantity of which one is asked whether it is above 0, by its interval.
func positive(low, high float64) Verdict {
	switch {
	case low > 0:
		return Holds
	case high < 0:
		return Fails
	}
	return Undecided
}

// span is where a value of one seed is: a goodput between the largest rate that holds and the
// smallest that fails, any other at a point.
type span struct{ low, high float64 }

// pairedSeeds are those from which the interval is Student's t; of fewer it is from the least to
// the greatest, as two have a t of 12.7.
const pairedSeeds = 5

// interval is that of values, one a seed.
func interval(values []span) (low, high float64) {
	lows, highs := make([]float64, len(values)), make([]float64, len(values))
	for i, v := range values {
		lows[i], highs[i] = v.low, v.high
	}
	low, high = slices.Min(lows), slices.Max(highs)
	if n := len(values); n >= pairedSeeds && !math.IsInf(low, 0) && !math.IsInf(high, 0) {
		low, _ = tInterval(lows)
		_, high = tInterval(highs)
	}
	return low, high
}

// tInterval is Student's t interval of the mean.
func tInterval(values []float64) (low, high float64) {
	mean, half := stats.Mean(values, confidence)
	return mean - half, mean + half
}

// better says whether one value is better than another, by the differences of their seeds, which
// have the same arrivals. Who serves is better than who does not.
func (m *Metric) better(a, b *Value) Verdict {
	switch {
	case a.none && b.none:
		return Undecided
	case a.none:
		return Fails
	case b.none:
		return Holds
	}
	differences := make([]span, len(a.spans))
	for i := range a.spans {
		x, y := a.spans[i], b.spans[i]
		if !m.Higher {
			x, y = y, x
		}
		differences[i] = span{x.low - y.high, x.high - y.low}
	}
	return positive(interval(differences))
}
