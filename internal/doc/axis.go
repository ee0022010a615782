package doc

import (
	"math"
	"slices"
)

// Intervals may extend to this multiple of the highest mean, because the intervals of few seeds
// would flatten everything else.
const (
	longestLinear = 1.5
	longestLog    = 3
)

// leastLog is the minimum ratio of the ends of a logarithmic axis.
const leastLog = 3

// Points above a leap have collapsed: they exceed the next lower value by this factor and are at
// most a third of all points. Their numbers stand within the uppermost part of the chart. Charts
// without lines with markers, such as time lines, have no means and so no collapsed points.
const (
	leapLinear   = 8
	leapLog      = 20
	numbersAbove = 1.15
)

// Fit gives line charts one common y axis and each an x axis, unless they have ends already. The y
// axis stays linear where a logarithmic one does not help. Collapsed points lie above it. Bars
// have a linear axis, because they begin at 0; those that have collapsed are cut.
func Fit(charts ...*Chart) {
	var all []Point
	var levels []float64
	given, whole, means := false, false, false
	for _, c := range charts {
		c.cut()
		if len(c.Bars) > 0 || c.Heat != nil {
			c.LogY = false
			return
		}
		given, whole = given || len(c.YEnds) == 2, whole || c.Whole
		for i := range c.Lines {
			means = means || !c.Lines[i].Bare && !c.Lines[i].Dots
		}
		levels, all = append(levels, c.Levels...), append(all, c.points()...)
	}
	leap := math.Inf(1)
	if means {
		leap = leapLinear
	}
	ends, log := ends(all, levels, leap, charts[0].LogX, charts[0].LogY)
	if whole { // so that a whole number above 0 has a label
		ends[1] = max(ends[1], 1.08)
	}
	for _, c := range charts {
		if len(c.XEnds) == 0 {
			c.XEnds, c.LogX = c.across()
		}
		if !given {
			c.YEnds, c.LogY = ends, log
		}
	}
}

// cut ends the axis of bars below those that have collapsed. They are cut there, with their values.
func (c *Chart) cut() {
	all := make([]Point, len(c.Bars))
	for i := range c.Bars {
		all[i].Y = c.Bars[i].Value()
	}
	low, _ := values(all, nil)
	kept, ceiling := within(all, leapLinear)
	if _, high := values(kept, nil); low >= 0 && ceiling < math.Inf(1) && len(c.Levels) == 0 {
		c.YEnds = []float64{0, 1.5 * high}
	}
}

// points returns the points of all lines.
func (c *Chart) points() (all []Point) {
	for i := range c.Lines {
		all = append(all, c.Lines[i].Points...)
	}
	return all
}

// across returns the x axis, which is logarithmic if asked for and useful.
func (c *Chart) across() (ends []float64, log bool) {
	low, high, bare := math.Inf(1), math.Inf(-1), false
	for i := range c.Lines {
		bare = bare || c.Lines[i].Bare
		for _, p := range c.Lines[i].Points {
			low, high = min(low, p.X), max(high, p.X)
		}
	}
	pad := 0.06 * (high - low)
	switch {
	case low > high: // no point
		return []float64{0, 1}, false
	case c.LogX && c.LogY:
		return wide(low, high)
	case c.LogX && low > 0:
		beyond := max(math.Pow(high/low, 0.06), 1.1)
		return []float64{low / beyond, high * beyond}, true
	case bare:
		pad = max(pad/3, 1e-9)
	case pad == 0:
		pad = max(0.1*high, 0.01)
	}
	return []float64{low - pad, high + pad}, false
}

func ends(all []Point, levels []float64, leap float64, logX, log bool) ([]float64, bool) {
	low, high := values(all, levels)
	switch {
	case len(all) == 0:
		return []float64{0, 1}, false
	case logX && log:
		return wide(low, high)
	case low < 0:
		high = max(high, 0)
		pad := 0.08 * (high - low)
		return []float64{low - pad, high + pad}, false
	}
	if log {
		if ends := logarithmic(all, leap*leapLog/leapLinear); ends != nil {
			return above(ends, levels), true
		}
	}
	return above(linear(all, leap), levels), false
}

// above extends an axis to the levels.
func above(ends, levels []float64) []float64 {
	for _, level := range levels {
		ends[1] = max(ends[1], 1.08*level)
	}
	return ends
}

// values returns the lowest and the highest of values and levels.
func values(all []Point, levels []float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for i := range all {
		low, high = min(low, all[i].Y), max(high, all[i].Y)
	}
	for _, level := range levels {
		low, high = min(low, level), max(high, level)
	}
	return low, high
}

// linear returns an axis from 0.
func linear(all []Point, leap float64) []float64 {
	kept, ceiling := within(all, leap)
	most := 0.0
	for i := range kept {
		_, high := kept[i].Ends(kept[i].Y)
		most = max(most, kept[i].Y, min(high, longestLinear*kept[i].Y))
	}
	ends := []float64{0, max(most*1.08, 1e-9)}
	if ceiling < math.Inf(1) {
		ends[1] = min(ends[1]*numbersAbove, 0.99*ceiling)
	}
	return ends
}

// logarithmic returns nil unless all values are positive and far apart. An interval may reach below
// 0, which a logarithm cannot show, so the axis ends a factor of 3 below the lowest mean.
func logarithmic(all []Point, leap float64) []float64 {
	kept, ceiling := within(all, leap)
	least, most := values(kept, nil)
	if !(least > 0) || most < leastLog*least {
		return nil
	}
	low, high := least, most
	for i := range kept {
		from, to := kept[i].Ends(kept[i].Y)
		low, high = min(low, from), max(high, to)
	}
	ends := []float64{max(low, least/longestLog) / 1.35, min(high, most*longestLog) * 1.35}
	if ceiling < math.Inf(1) {
		ends[1] = min(ends[1]*math.Pow(ends[1]/ends[0], numbersAbove-1), 0.99*ceiling)
	}
	return ends
}

// wide returns a logarithmic axis, or a linear one if values are close together.
func wide(low, high float64) ([]float64, bool) {
	switch {
	case !(low > 0):
		return []float64{0, max(high*1.08, 1e-9)}, false
	case high < leastLog*low:
		pad := max(0.08*(high-low), 0.02*high)
		return []float64{low - pad, high + pad}, false
	}
	return []float64{low / 1.25, high * 1.25}, true
}

// within removes collapsed points. ceiling is the lowest of these.
func within(all []Point, leap float64) (kept []Point, ceiling float64) {
	ascending := make([]float64, len(all))
	for i := range all {
		ascending[i] = all[i].Y
	}
	slices.Sort(ascending)
	ceiling = math.Inf(1)
	for i := (2*len(all) + 2) / 3; i < len(all); i++ {
		if last := ascending[i-1]; last > 0 && ascending[i] >= leap*last {
			ceiling = ascending[i]
			break
		}
	}
	kept = slices.DeleteFunc(slices.Clone(all), func(p Point) bool { return p.Y >= ceiling })
	return kept, ceiling
}
