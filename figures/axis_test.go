package figures

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func drawCurves(t *rapid.T) []curve {
	out := make([]curve, rapid.IntRange(1, 5).Draw(t, "curves"))
	for i := range out {
		for x := range rapid.IntRange(1, 8).Draw(t, "points") {
			values := rapid.SliceOfN(rapid.Float64Range(1e-3, 1e5), 1, 4).Draw(t, "values")
			out[i].points = append(out[i].points, summarise(float64(x), values, false))
		}
	}
	return out
}

// Intervals hold the mean, and never leave the possible.
func TestIntervalsAreOfThePossible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := chart{most: 100, curves: drawCurves(t)}
		pic := picture{charts: []chart{c}}
		pic.bound()
		pic.each(func(_ *chart, q *point) {
			if q.low < 0 || q.low > q.mean || q.high < q.mean {
				t.Fatalf("interval %g to %g around %g", q.low, q.high, q.mean)
			}
			if q.mean <= 100 && q.high > 100 {
				t.Fatalf("a share reaches %g %%", q.high)
			}
		})
	})
}

// At most a third of the points leave the panel, and only across a leap; all others are
// within it, and the axis is not stretched by intervals.
func TestOnlyCollapsedPointsLeave(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := drawCurves(t)
		for name, c := range map[string]struct {
			axis          axis
			leap, longest float64
		}{"linear": {fitted(all), leapLinear, longestLinear},
			"logarithmic": {logarithmic(all), leapLog, longestLog}} {
			points, left, lowest, highest := 0, 0, math.Inf(1), 0.0
			for _, one := range all {
				for _, q := range one.points {
					points++
					if q.mean > c.axis.high {
						left++
						lowest = math.Min(lowest, q.mean)
					} else {
						highest = math.Max(highest, q.mean)
					}
				}
			}
			if 3*left > points {
				t.Fatalf("%s: %d of %d points leave the panel", name, left, points)
			}
			if left > 0 && lowest < leapLinear*highest {
				t.Fatalf("%s: %g leaves the panel and %g does not", name, lowest, highest)
			}
			if most := highest * math.Max(longestLinear, longestLog) * 20; c.axis.high > most &&
				c.axis.high > c.axis.low*20 {
				t.Fatalf("%s: the axis ends at %g, the highest mean is %g", name, c.axis.high, highest)
			}
		}
	})
}

// One collapsed series leaves the others legible.
func TestCollapsed(t *testing.T) {
	settled, gone := curve{}, curve{}
	for x, v := range []float64{26, 30, 34, 36} {
		settled.points = append(settled.points, point{x: float64(x), mean: v, low: v, high: v})
		gone.points = append(gone.points, point{x: float64(x), mean: v, low: v, high: v})
	}
	gone.points[2].mean, gone.points[3].mean = 9300, 9500
	if a := fitted([]curve{settled, gone}); a.log || a.high < 36 || a.high > 60 {
		t.Errorf("axis is %+v, want one of 36", a)
	}
}

// The number of a point above the panel has the digits of the table.
func TestLeftLabel(t *testing.T) {
	for v, want := range map[float64]string{7.716: "7.72", 5.07: "5.07", 0.0512: "0.0512",
		93.04: "93.0", 9300.4: "9300", 421100: "421k"} {
		if got := leftLabel(v); got != want {
			t.Errorf("%g is labelled %q, want %q", v, got, want)
		}
	}
}
