package figures

import (
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
)

// axis is the range of the metric and how it is scaled.
type axis struct {
	low, high float64
	log       bool
}

// axisOf chooses the axis of a panel. All panels of a figure are logarithmic
// when one needs it.
func axisOf(m metric, p panel, all []panel) axis {
	mean := func(q point) (float64, float64) { return q.mean, q.mean }
	log := m.log
	for _, one := range all {
		r := rangeOf([]panel{one}, mean)
		log = log || r.high > 20*r.low
	}
	positive := rangeOf(all, mean).low > 0
	y := rangeOf([]panel{p}, func(q point) (float64, float64) { return q.low, q.high })
	if log && positive {
		// A confidence interval may reach below zero, a logarithm may not.
		low := math.Max(y.low, rangeOf([]panel{p}, mean).low/3)
		return axis{low / 1.35, y.high * 1.35, true}
	}
	return axis{0, math.Max(y.high*1.08, 1e-9), false}
}

// of scales a value.
func (a axis) of(v float64) float64 {
	if a.log {
		return math.Log10(v)
	}
	return v
}

// Ticks labels the decades of a logarithmic axis, and 2 and 5 within them as
// long as there are few; round steps of a linear one. Values are scaled.
func (a axis) Ticks(_, _ float64) []plot.Tick {
	if !a.log {
		return linearTicks(a.high)
	}
	decades := math.Log10(a.high / a.low)
	var ticks []plot.Tick
	for e := math.Floor(math.Log10(a.low)); e <= math.Log10(a.high); e++ {
		for digit := 1; digit < 10; digit++ {
			v := float64(digit) * math.Pow(10, e)
			if v < a.low || v > a.high {
				continue
			}
			t := plot.Tick{Value: a.of(v)}
			if digit == 1 || decades < 2.5 && (digit == 2 || digit == 5) {
				t.Label = tickLabel(v)
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}

// linearTicks labels four to ten round values from 0 to high.
func linearTicks(high float64) []plot.Tick {
	step := math.Pow(10, math.Floor(math.Log10(high)))
	switch {
	case high/step < 2:
		step /= 5
	case high/step < 4:
		step /= 2
	}
	var ticks []plot.Tick
	for i := 0; float64(i)*step <= high; i++ {
		ticks = append(ticks, plot.Tick{Value: float64(i) * step, Label: tickLabel(float64(i) * step)})
	}
	return ticks
}

func tickLabel(v float64) string {
	if v >= 1e4 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// span is a closed interval.
type span struct{ low, high float64 }

// rangeOf returns the smallest span that holds those of all points.
func rangeOf(ps []panel, of func(point) (low, high float64)) span {
	s := span{math.Inf(1), math.Inf(-1)}
	for _, p := range ps {
		for _, c := range p.curves {
			for _, q := range c.points {
				low, high := of(q)
				s.low, s.high = math.Min(s.low, low), math.Max(s.high, high)
			}
		}
	}
	return s
}

// rateTicks labels the rates that were run, or round numbers when those are
// too many.
func rateTicks(p panel) plot.Ticker {
	var rates []float64
	for _, c := range p.curves {
		for _, q := range c.points {
			rates = append(rates, q.rate)
		}
	}
	slices.Sort(rates)
	rates = slices.Compact(rates)
	if len(rates) > 8 {
		return plot.DefaultTicks{}
	}
	ticks := make(plot.ConstantTicks, len(rates))
	for i, r := range rates {
		ticks[i] = plot.Tick{Value: r, Label: tickLabel(r)}
	}
	return ticks
}
