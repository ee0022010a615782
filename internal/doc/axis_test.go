package doc

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func drawLines(t *rapid.T) *Chart {
	c := &Chart{Lines: make([]Line, rapid.IntRange(1, 5).Draw(t, "lines"))}
	for i := range c.Lines {
		for x := range rapid.IntRange(1, 8).Draw(t, "points") {
			p := Point{X: float64(x)}
			p.Y, p.Sample = Over(rapid.SliceOfN(rapid.Float64Range(1e-3, 1e5), 1, 4).Draw(t, "values"))
			c.Lines[i].Points = append(c.Lines[i].Points, p)
		}
	}
	return c
}

// An interval holds its mean, and never reaches below 0.
func TestIntervalsAreOfThePossible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, l := range drawLines(t).Lines {
			for _, p := range l.Points {
				if low, high := p.Ends(p.Y); low < 0 || low > p.Y || high < p.Y || p.Shown() {
					t.Fatalf("interval %g to %g around %g of %d runs", low, high, p.Y, p.N)
				}
			}
		}
	})
}

// At most a third of the points leave the chart, and only across a leap; all others are within it,
// and the axis is not stretched by intervals.
func TestOnlyCollapsedPointsLeave(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawLines(t)
		c.LogY = rapid.Bool().Draw(t, "log")
		Fit(c)
		points, left, lowest, highest := 0, 0, math.Inf(1), 0.0
		for _, l := range c.Lines {
			for _, p := range l.Points {
				points++
				if p.Y > c.YEnds[1] {
					left++
					lowest = math.Min(lowest, p.Y)
				} else {
					highest = math.Max(highest, p.Y)
				}
			}
		}
		if 3*left > points {
			t.Fatalf("%d of %d points leave the chart", left, points)
		}
		if left > 0 && lowest < leapLinear*highest {
			t.Fatalf("%g leaves the chart and %g does not", lowest, highest)
		}
		if most := highest * longestLog * 20; c.YEnds[1] > most && c.YEnds[1] > c.YEnds[0]*20 {
			t.Fatalf("the axis ends at %g, the highest mean is %g", c.YEnds[1], highest)
		}
	})
}

// One collapsed series leaves the others legible, and charts that are compared have one axis.
func TestAxisEndsBelowWhatCollapsed(t *testing.T) {
	of := func(last float64) *Chart {
		l := Line{Name: "vLLM"}
		for i, v := range []float64{30, 32, 35, last} {
			l.Points = append(l.Points, Point{X: float64(i), Y: v})
		}
		return &Chart{Lines: []Line{l}}
	}
	steady, collapsed, both := of(40), of(9000), []*Chart{of(40), of(9000)}
	Fit(steady)
	Fit(collapsed)
	Fit(both...)
	if end := steady.YEnds[1]; end < 40 || end > 50 {
		t.Errorf("the axis of a steady line ends at %g", end)
	}
	if end := collapsed.YEnds[1]; end < 35 || end > 60 || collapsed.Lines[0].Points[3].Y != 9000 {
		t.Errorf("the axis ends at %g", end)
	}
	if both[0].YEnds[1] != both[1].YEnds[1] {
		t.Errorf("axes end at %v and %v", both[0].YEnds, both[1].YEnds)
	}
}

// Bars that have collapsed are cut, so that the parts of the others are seen.
func TestCollapsedBarsAreCut(t *testing.T) {
	of := func(values ...float64) *Chart {
		c := &Chart{LogY: true}
		for _, v := range values {
			c.Bars = append(c.Bars, Bar{Parts: []Part{{Value: v / 2}, {Value: v / 2}}})
		}
		Fit(c)
		return c
	}
	if ends := of(30, 32, 9000, 35).YEnds; len(ends) != 2 || ends[1] < 35 || ends[1] > 60 {
		t.Errorf("the axis ends at %v", ends)
	}
	for _, c := range []*Chart{of(30, 32, 200, 35), of(1, 900, 1000), of(-3, 1, 2, 90)} {
		if c.YEnds != nil || c.LogY {
			t.Errorf("%v are cut at %v, logarithmic %t", c.Bars, c.YEnds, c.LogY)
		}
	}
}

// A line over time is mostly near 0, and counts reach a whole number.
func TestTimeLinesAreWhole(t *testing.T) {
	l := Line{Bare: true}
	for i := range 400 {
		l.Points = append(l.Points, Point{X: float64(i), Y: 0.0007})
	}
	l.Points[7].Y = 3
	c := &Chart{Lines: []Line{l}}
	if Fit(c); c.YEnds[1] < 3 {
		t.Errorf("3 requests are above the axis, which ends at %g", c.YEnds[1])
	}
	l.Points[7].Y = 0.1
	c = &Chart{Lines: []Line{l}, Whole: true}
	if Fit(c); c.YEnds[1] < 1 {
		t.Errorf("an axis of counts ends at %g", c.YEnds[1])
	}
}

// Values of both signs, levels, and what is close together have axes that hold them.
func TestAxesHoldTheirValues(t *testing.T) {
	of := func(values ...float64) *Chart {
		l := Line{}
		for i, v := range values {
			l.Points = append(l.Points, Point{X: float64(100 + i), Y: v})
		}
		return &Chart{Lines: []Line{l}}
	}
	signed, level, near, none := of(-3, 1), of(1, 2), of(10, 11), &Chart{}
	level.Levels = []float64{5}
	near.LogX, near.LogY = true, true
	for name, c := range map[string]*Chart{"signed": signed, "level": level, "near": near,
		"none": none} {
		Fit(c)
		low, high := values(append(c.points(), Point{Y: c.YEnds[0]}), c.Levels)
		if low < c.YEnds[0] || high > c.YEnds[1] || c.LogY || c.LogX {
			t.Errorf("%s: %g to %g on %+v", name, low, high, c)
		}
	}
}
