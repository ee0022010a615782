package figures

import "testing"

// A point that has collapsed does not hide the others in HTML either: the axis ends below it.
func TestAxisEndsBelowWhatCollapsed(t *testing.T) {
	of := func(last float64) chart {
		c := chart{y: "Mean TBT (ms)", curves: []curve{{series: "vLLM"}}}
		for i, v := range []float64{30, 32, 35, last} {
			c.curves[0].points = append(c.curves[0].points, single(float64(i), v))
		}
		c.axis = fitted(c.curves)
		return c
	}
	steady, collapsed := of(40), of(9000)
	if top := steady.data(nil).Top; top != 0 {
		t.Errorf("a steady curve ends at %g", top)
	}
	if d := collapsed.data(nil); d.Top < 35 || d.Top > 1000 || d.Lines[0].Points[3].Y != 9000 {
		t.Errorf("the axis ends at %g, the points are %+v", d.Top, d.Lines[0].Points)
	}
}
