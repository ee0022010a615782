package doc

import "testing"

// A caption names the statistic of several runs. It is empty if each value comes from one run.
func TestSpreadSaysWhatIsDrawn(t *testing.T) {
	of := func(runs ...int) *Figure {
		c := &Chart{Lines: []Line{{}}}
		for _, n := range runs {
			var values []float64
			for i := range n {
				values = append(values, float64(i+1))
			}
			var p Point
			p.Y, p.Sample = Over(values)
			c.Lines[0].Points = append(c.Lines[0].Points, p)
		}
		return &Figure{Charts: []*Chart{c}}
	}
	for want, f := range map[string]*Figure{
		"": of(1, 1),
		"Small dots: each of 2 to 3 runs; five or more have a 95 % interval of the mean.": of(2, 3, 1),
		"Whiskers: 95 % interval of the mean of 5 runs.":                                  of(5, 5),
	} {
		if got := f.Spread("runs"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	five := of(5).Charts[0].Lines[0].Points[0]
	if !five.Shown() || five.Runs != nil || five.Y != 3 || *five.High-3 < 1.9 || *five.High-3 > 2 {
		t.Errorf("of five runs %+v", five)
	}
}
