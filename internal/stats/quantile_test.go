package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

var percents = []float64{0, 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9, 100}

// The values are numpy.percentile's.
func TestPercentilesByHand(t *testing.T) {
	for _, c := range []struct {
		samples []float64
		p, want float64
	}{
		{[]float64{7}, 99, 7},
		{[]float64{0.030, 0.075, 0.101, 0.138}, 50, 0.088},
		{[]float64{0.030, 0.075, 0.101, 0.138}, 90, 0.1269},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 90, 10},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 95, 10.5},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 99, 10.9},
		{[]float64{10, 20}, 0, 10},
		{[]float64{10, 20}, 100, 20},
	} {
		if got := Of(c.samples, c.p); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("P%g of %v is %g, want %g", c.p, c.samples, got, c.want)
		}
	}
}

// shapes are long series of durations in nanoseconds.
var shapes = map[string]func(r *rand.Rand) int64{
	"uniform":   func(r *rand.Rand) int64 { return r.Int64N(1e9) },
	"lognormal": func(r *rand.Rand) int64 { return int64(3e7 * math.Exp(r.NormFloat64())) },
	"ties":      func(r *rand.Rand) int64 { return 1e7 * r.Int64N(30) },
	"two peaks": func(r *rand.Rand) int64 {
		if r.Float64() < 0.03 {
			return 8e8 + r.Int64N(1e6)
		}
		return 3e7 + r.Int64N(1e5)
	},
}

// reference is the definition with the whole series at hand.
func reference(ascending []int64, p float64) float64 {
	rank := p / 100 * float64(len(ascending)-1)
	low, high := ascending[int(math.Floor(rank))], ascending[int(math.Ceil(rank))]
	return float64(low) + (rank-math.Floor(rank))*float64(high-low)
}

func TestCountsAgainstSort(t *testing.T) {
	for name, draw := range shapes {
		for _, n := range []int{1, 2, 101, 10_000, 12_345} {
			r := rand.New(rand.NewPCG(1, uint64(n)))
			var c Counts
			var all []int64
			for len(all) < n {
				value, times := draw(r), 1+r.IntN(3)
				c.Add(value, times)
				all = append(all, slices.Repeat([]int64{value}, times)...)
			}
			slices.Sort(all)
			for i, got := range c.Percentiles(percents...) {
				if want := reference(all, percents[i]); math.Abs(got-want) > 1e-12*want {
					t.Errorf("%s, %d samples: P%g is %v, want %v", name, n, percents[i], got, want)
				}
			}
		}
	}
}

// Beyond 2^18 different values the counts round: by no more than they say, in bounded memory.
func TestCountsRoundVeryManyValues(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var c Counts
	all := make([]int64, 4*mostExact)
	for i := range all {
		all[i] = int64(3e7 * math.Exp(r.NormFloat64()))
		c.Add(all[i], 1)
	}
	if len(c.of) > mostExact {
		t.Errorf("%d values are kept of %d", len(c.of), len(all))
	}
	slices.Sort(all)
	for i, got := range c.Percentiles(percents...) {
		want := reference(all, percents[i])
		if math.Abs(got-want) > Error*want {
			t.Errorf("P%g is %v, want %v", percents[i], got, want)
		}
	}
	for _, c := range []struct{ value, want int64 }{
		{0, 0}, {1, 1}, {65535, 65535}, {65536, 65536}, {65537, 65538}, {131071, 131072},
		{1<<40 + 1<<24, 1<<40 + 1<<25}, {1<<40 + 1<<24 - 1, 1 << 40},
	} {
		if got := rounded(c.value); got != c.want {
			t.Errorf("%d is rounded to %d, want %d", c.value, got, c.want)
		}
	}
}

func BenchmarkAdd(b *testing.B) {
	for name, draw := range shapes {
		b.Run(name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 1))
			values := make([]int64, 1<<18)
			for i := range values {
				values[i] = draw(r)
			}
			b.ReportAllocs()
			var c Counts
			for i := 0; b.Loop(); i++ {
				c.Add(values[i%len(values)], 1)
			}
		})
	}
}
