package whatif

import (
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/experiments/bracket"
	"github.com/sparseserve/sparseserve/internal/stats"
)

// positive reports, by its interval, whether a quantity is above 0.
func positive(low, high float64) bracket.Verdict {
	switch {
	case low > 0:
		return bracket.Holds
	case high < 0:
		return bracket.Fails
	}
	return bracket.Undecided
}

// span is the range of a seed's value: for goodput the largest rate that holds and the smallest
// that fails, for other metrics a point.
type span struct{ low, high float64 }

// pairedSeeds is the number of seeds from which the interval is Student's t. With fewer seeds it
// ranges from the minimum to the maximum, because two seeds have a t of 12.7.
const pairedSeeds = 5

// interval returns the interval of values, one per seed.
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

// tInterval returns Student's t interval of the mean.
func tInterval(values []float64) (low, high float64) {
	mean, half := stats.Mean(values, confidence)
	return mean - half, mean + half
}

// better reports whether value a is better than value b, by the differences per seed, which has the
// same arrivals in both. A value that is missing because nothing was served is worse than any
// other.
func (m *Metric) better(a, b *Value) bracket.Verdict {
	switch {
	case a.none && b.none:
		return bracket.Undecided
	case a.none:
		return bracket.Fails
	case b.none:
		return bracket.Holds
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
