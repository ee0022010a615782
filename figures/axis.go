package figures

import (
	"math"

	"gonum.org/v1/plot"

	"github.com/sparseserve/sparseserve/internal/stats"
)

// axis is the range and the scale of a quantity.
type axis struct {
	low, high float64
	log       bool
}

// of scales a value.
func (a axis) of(v float64) float64 {
	if a.log {
		return math.Log10(math.Max(v, a.low))
	}
	return v
}

// Ticks labels a logarithmic axis at its decades, also at 2 and 5 within a few decades, and at most
// digits within a single decade. A linear axis has round steps. Values are scaled.
func (a axis) Ticks(_, _ float64) []plot.Tick {
	if !a.log {
		return linearTicks(a.low, a.high)
	}
	decades := math.Log10(a.high / a.low)
	var ticks []plot.Tick
	for e := math.Floor(math.Log10(a.low)); e <= math.Log10(a.high); e++ {
		for digit := 1; digit < 10; digit++ {
			v := float64(digit) * math.Pow(10, e)
			if v < a.low || a.of(v) > a.of(a.high)-0.03*decades {
				continue
			}
			t := plot.Tick{Value: a.of(v)}
			if digit == 1 || decades < 2.5 && (digit == 2 || digit == 5) || decades < 1 && digit != 7 &&
				digit != 9 {
				t.Label = stats.Tick(v)
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}

// linearTicks labels four to ten round values.
func linearTicks(low, high float64) []plot.Tick {
	step := math.Pow(10, math.Floor(math.Log10(high-low)))
	switch {
	case (high-low)/step < 2:
		step /= 5
	case (high-low)/step < 4:
		step /= 2
	}
	var ticks []plot.Tick
	// a label at the very top would push the title up
	for i := math.Ceil(low / step); i*step <= high-0.03*(high-low); i++ {
		v := i * step
		if v == 0 {
			v = 0 // avoid the label -0
		}
		ticks = append(ticks, plot.Tick{Value: v, Label: stats.Tick(v)})
	}
	return ticks
}
