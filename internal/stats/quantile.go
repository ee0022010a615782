// Package stats provides percentiles, confidence intervals of means, and number formatting for
// tables.
//
// Percentile p of n samples is at rank p/100 (n-1) of the sorted samples, linear between two
// neighbours, as in NumPy's default and in vLLM's benchmark.
package stats

import (
	"maps"
	"math"
	"math/bits"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Of returns percentile p, 0 to 100, of ascending samples. It panics without samples.
func Of(ascending []float64, p float64) float64 {
	return at(p, len(ascending), func(rank int) float64 { return ascending[rank] })
}

func at(p float64, n int, sample func(rank int) float64) float64 {
	whole, between := math.Modf(p / 100 * float64(n-1))
	low := sample(int(whole))
	return low + between*(sample(min(int(whole)+1, n-1))-low)
}

// Counts counts samples by value. Percentiles are exact up to 2^18 different values. Beyond, each
// sample is rounded to its 16 leading bits, so that memory stays bounded. The zero Counts is empty.
type Counts struct {
	of     map[int64]int
	last   int64 // is often added again; of lacks its samples
	lasts  int
	n      int
	coarse bool
}

// Error bounds the relative error of a percentile of a Counts that rounds.
const Error = 1.0 / (1 << keptBits)

const (
	mostExact = 1 << 18
	keptBits  = 16
)

// Add adds a non-negative sample several times.
func (c *Counts) Add(value int64, times int) {
	if times == 0 {
		return
	}
	c.n += times
	if value != c.last {
		c.settle()
		c.last, c.lasts = value, 0
	}
	c.lasts += times
}

// settle adds the pending last value to the counts.
func (c *Counts) settle() {
	if c.lasts == 0 {
		return
	}
	if c.of == nil {
		c.of = map[int64]int{}
	}
	if !c.coarse && len(c.of) >= mostExact {
		exact := c.of
		c.of, c.coarse = map[int64]int{}, true
		for value, times := range exact {
			c.of[rounded(value)] += times
		}
	}
	value := c.last
	if c.coarse {
		value = rounded(value)
	}
	c.of[value] += c.lasts
	c.lasts = 0
}

// rounded rounds a value to 16 leading bits.
func rounded(value int64) int64 {
	drop := max(0, bits.Len64(uint64(value))-keptBits)
	return (value + 1<<drop>>1) >> drop << drop
}

// Percentiles returns percentiles, each 0 to 100. It panics without samples.
func (c *Counts) Percentiles(of ...float64) []float64 {
	c.settle()
	values := slices.Sorted(maps.Keys(c.of))
	upTo := make([]int, len(values)) // samples at or below each value
	total := 0
	for i, value := range values {
		total += c.of[value]
		upTo[i] = total
	}
	out := make([]float64, len(of))
	for i, p := range of {
		out[i] = at(p, c.n, func(rank int) float64 {
			i, _ := slices.BinarySearch(upTo, rank+1)
			return float64(values[i])
		})
	}
	return out
}

// Mean returns the mean of two or more samples and the half width of its Student's t interval at a
// confidence from 0 to 1.
func Mean(samples []float64, confidence float64) (mean, half float64) {
	mean, sd := stat.MeanStdDev(samples, nil)
	n := float64(len(samples))
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(0.5 + confidence/2)
	return mean, t * sd / math.Sqrt(n)
}

// Significant rounds to the given number of significant digits.
func Significant(v float64, digits int) float64 {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
	return rounded
}

// Digits formats a value with three significant digits, and integers in full. It formats a value
// that is not finite as 0.
func Digits(v float64) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return "0"
	}
	decimals := max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	return strconv.FormatFloat(v, 'f', min(decimals, 6), 64)
}

// Short shortens a number to three significant digits, but keeps the digits before the point. It
// returns other texts as they are.
func Short(number string) string {
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || v == math.Trunc(v) || math.IsInf(v, 0) || math.IsNaN(v) {
		return number
	}
	return Exact(Significant(v, max(3, 1+int(math.Floor(math.Log10(math.Abs(v)))))))
}

// Exact formats a value with as many digits as it needs to be read back.
func Exact(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// Tick formats a value for axes and names: with as few digits as needed, at most four.
func Tick(v float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}} {
		if v >= unit.size {
			return strconv.FormatFloat(v/unit.size, 'g', 4, 64) + unit.name
		}
	}
	if v >= 1e4 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
