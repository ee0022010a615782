package figures

import (
	"math"
	"slices"

	"gonum.org/v1/plot"

	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/stats"
)

// axis is the range and the scale of a quantity.
type axis struct {
	low, high float64
	log       bool
}

// mostNamed is the most x values that are labelled themselves. With more, the axis has round
// labels.
const mostNamed = 8

// across returns the x axis of a line chart and the x values to label; nil for round labels.
func across(c *doc.Chart) (a axis, named []float64) {
	if len(c.XEnds) == 2 {
		return axis{c.XEnds[0], c.XEnds[1], c.LogX}, nil
	}
	lines, bare := false, false
	for i := range c.Lines {
		l := &c.Lines[i]
		lines, bare = lines || !l.Bare && !l.Dots, bare || l.Bare
		for _, p := range l.Points {
			named = append(named, p.X)
		}
	}
	slices.Sort(named)
	if named = slices.Compact(named); len(named) == 0 {
		return axis{0, 1, false}, nil
	}
	a = axis{named[0], named[len(named)-1], c.LogX && named[0] > 0}
	if len(named) > mostNamed || !lines {
		named = nil
	}
	switch pad := 0.06 * (a.high - a.low); {
	case a.log && named == nil:
		a.low, a.high = a.low/1.3, a.high*1.3
	case a.log:
		beyond := math.Max(math.Pow(a.high/a.low, 0.06), 1.1)
		a.low, a.high = a.low/beyond, a.high*beyond
	case bare:
		a.low, a.high = a.low-max(pad/3, 1e-9), a.high+max(pad/3, 1e-9)
	case pad == 0:
		a.low, a.high = a.low-max(0.1*a.high, 0.01), a.high+max(0.1*a.high, 0.01)
	default:
		a.low, a.high = a.low-pad, a.high+pad
	}
	return a, named
}

// ticksAt labels the given values.
func (a axis) ticksAt(values []float64) plot.ConstantTicks {
	ticks := make(plot.ConstantTicks, len(values))
	for i, v := range values {
		ticks[i] = plot.Tick{Value: a.of(v), Label: stats.Tick(v)}
	}
	thin(ticks)
	return ticks
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

// fewTicks labels a low panel: every second or third tick of a linear axis.
type fewTicks struct{ axis }

func (f fewTicks) Ticks(_, _ float64) []plot.Tick {
	all := linearTicks(f.low, f.high)
	step := max(1, (len(all)+2)/4)
	var some []plot.Tick
	for i := 0; i < len(all); i += step {
		some = append(some, all[i])
	}
	return some
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

// thin removes labels that would overlap the label before.
func thin(ticks []plot.Tick) {
	const points = 290 // from the first to the last, in the narrowest panel
	if len(ticks) < 2 {
		return
	}
	style := noteStyle()
	style.Font.Size = tickSize
	span := ticks[len(ticks)-1].Value - ticks[0].Value
	last := 0
	for i := 1; i < len(ticks); i++ {
		gap := points * (ticks[i].Value - ticks[last].Value) / span
		if gap < float64(style.Width(ticks[i].Label)+style.Width(ticks[last].Label))/2+6 {
			ticks[i].Label = ""
			continue
		}
		last = i
	}
}
