package figures

import "testing"

// TestRejectsAreMarked: a point of runs that refused requests is hollow, and the legend says why.
func TestRejectsAreMarked(t *testing.T) {
	runs := []Run{
		{System: "a", Rate: 1, Completed: 10}, {System: "a", Rate: 2, Completed: 8, Rejected: 2},
		{System: "b", Rate: 1, Completed: 10}, {System: "b", Rate: 2, Completed: 10},
	}
	one := func(*Run) float64 { return 1 }
	c := chart{curves: curves(runs, func(r *Run) string { return r.System },
		func(r *Run) float64 { return r.Rate }, one)}
	for _, curve := range c.curves {
		for _, q := range curve.points {
			if want := curve.series == "a" && q.x == 2; q.rejects != want {
				t.Errorf("%s at %g: rejects %v, want %v", curve.series, q.x, q.rejects, want)
			}
		}
	}
	p := picture{charts: []chart{c}}
	if got := p.hollow(); got != "requests rejected" {
		t.Errorf("legend %q", got)
	}
	p.charts[0].curves[1].points[0].unstable = true
	if got := p.hollow(); got != "unstable queue, or requests rejected" {
		t.Errorf("legend %q", got)
	}
}
