package figures

import (
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
)

// axis is the range of a quantity and how it is scaled.
type axis struct {
	low, high float64
	log       bool
}

// Intervals may reach so far beyond the highest mean; the rest of a longer one is an
// arrow. Few seeds have intervals that would flatten everything else.
const (
	longestLinear = 1.5
	longestLog    = 3
)

// linear starts at 0.
func linear(spans ...span) axis {
	s := union(spans)
	return axis{0, math.Max(s.high*1.08, 1e-9), false}
}

// fitted is a linear axis of curves. Points that have collapsed run out of it.
func fitted(curves []curve) axis {
	ceiling := collapsed(curves, leapLinear)
	s := spanOf(within(curves, ceiling), func(q point) span {
		return span{0, math.Max(q.mean, math.Min(q.high, longestLinear*q.mean))}
	})
	a := linear(s)
	if !math.IsInf(ceiling, 1) {
		a.high = math.Min(a.high*numbersAbove, below(curves, ceiling))
	}
	return a
}

// leastLog is how far apart means are on a logarithmic axis, at least.
const leastLog = 3

// logarithmic falls back to linear when not everything is positive, and when all is within
// a fraction of a decade. Because a confidence interval may reach below zero and a logarithm may
// not, the axis ends a factor of 3 below the lowest mean.
func logarithmic(all []curve) axis {
	ceiling := collapsed(all, leapLog)
	curves := within(all, ceiling)
	m := spanOf(curves, means)
	if !(m.low > 0) || m.high < leastLog*m.low {
		return fitted(all)
	}
	s := spanOf(curves, intervals)
	a := axis{math.Max(s.low, m.low/longestLog) / 1.35,
		math.Min(s.high, m.high*longestLog) * 1.35, true}
	if !math.IsInf(ceiling, 1) {
		a.high = math.Min(a.high*math.Pow(a.high/a.low, numbersAbove-1), below(all, ceiling))
	}
	return a
}

// wideLog is a logarithmic axis around a span, a linear one where that is short or reaches 0.
func wideLog(s span) axis {
	switch {
	case !(s.low > 0):
		return linear(s)
	case s.high < leastLog*s.low:
		pad := math.Max(0.08*(s.high-s.low), 0.02*s.high)
		return axis{s.low - pad, s.high + pad, false}
	}
	return axis{s.low / 1.25, s.high * 1.25, true}
}

// Points above a leap have collapsed: they are so many times the next lower, and at most
// a third of all. Their numbers stand within the uppermost part of the panel.
const (
	leapLinear   = 8
	leapLog      = 20
	numbersAbove = 1.15
)

// collapsed returns the highest mean that has not; points above it run out of the panel,
// so that they do not flatten the others.
func collapsed(curves []curve, leap float64) float64 {
	var heights []float64
	for _, c := range curves {
		for _, q := range c.points {
			heights = append(heights, q.mean)
		}
	}
	slices.Sort(heights)
	for i := (2*len(heights) + 2) / 3; i < len(heights); i++ {
		if last := heights[i-1]; last > 0 && heights[i] >= leap*last {
			return last
		}
	}
	return math.Inf(1)
}

// below is an end of the axis that has none of the points above a ceiling.
func below(curves []curve, ceiling float64) float64 {
	least := math.Inf(1)
	for _, c := range curves {
		for _, q := range c.points {
			if q.mean > ceiling {
				least = math.Min(least, q.mean)
			}
		}
	}
	return 0.99 * least
}

// within leaves out the points above a ceiling.
func within(all []curve, ceiling float64) []curve {
	out := slices.Clone(all)
	for i := range out {
		out[i].points = slices.DeleteFunc(slices.Clone(out[i].points),
			func(q point) bool { return q.mean > ceiling })
	}
	return out
}

// of scales a value.
func (a axis) of(v float64) float64 {
	if a.log {
		return math.Log10(math.Max(v, a.low))
	}
	return v
}

// Ticks labels the decades of a logarithmic axis, 2 and 5 within them as long as
// there are few, and most digits within a single one; round steps of a linear one. Values are
// scaled.
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
				t.Label = tickLabel(v)
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}

// fewTicks are those of a low panel: every second or third of a linear axis.
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
			v = 0 // -0 would be labelled so
		}
		ticks = append(ticks, plot.Tick{Value: v, Label: tickLabel(v)})
	}
	return ticks
}

func tickLabel(v float64) string {
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

// span is a closed interval.
type span struct{ low, high float64 }

func means(q point) span     { return span{q.mean, q.mean} }
func intervals(q point) span { return span{q.low, q.high} }
func abscissae(q point) span { return span{q.x, q.x} }

// spanOf returns the smallest span that holds those of all points.
func spanOf(curves []curve, of func(point) span) span {
	var all []span
	for _, c := range curves {
		for _, q := range c.points {
			all = append(all, of(q))
		}
	}
	return union(all)
}

func union(spans []span) span {
	u := span{math.Inf(1), math.Inf(-1)}
	for _, s := range spans {
		u.low, u.high = math.Min(u.low, s.low), math.Max(u.high, s.high)
	}
	return u
}

// barSpan is the span of the bars' heights and intervals.
func barSpan(groups []group) span {
	var all []span
	for _, g := range groups {
		for i := range g.bars {
			h := g.bars[i].height()
			all = append(all, span{0, math.Max(h.mean, math.Min(h.high, longestLinear*h.mean))})
		}
	}
	return union(all)
}

// xTicks labels the x that were run, or round numbers when those are too many.
func (c *chart) xTicks() plot.Ticker {
	if c.across != nil {
		return *c.across
	}
	xs := slices.Clone(c.ticks)
	if xs == nil {
		for _, one := range c.curves {
			for _, q := range one.points {
				xs = append(xs, q.x)
			}
		}
		slices.Sort(xs)
		if xs = slices.Compact(xs); len(xs) > 8 {
			return plot.DefaultTicks{}
		}
	}
	ticks := make(plot.ConstantTicks, len(xs))
	for i, x := range xs {
		ticks[i] = plot.Tick{Value: c.xOf(x), Label: tickLabel(x)}
	}
	thin(ticks)
	return ticks
}

// thin leaves out labels that would run into the one before.
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

// xOf scales an x.
func (c *chart) xOf(x float64) float64 {
	if c.across != nil {
		return c.across.of(x)
	}
	if c.doubly {
		return math.Log2(x)
	}
	return x
}
