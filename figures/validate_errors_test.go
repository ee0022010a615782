package figures

import "testing"

// A column of the chart of errors is of a figure that some run has, in the order of all.
func TestErrorsThatNoRunHasAreNoColumn(t *testing.T) {
	runs := []validated{{errors: map[string]float64{"steps": 0, "ttft_mean_s": 0.1}},
		{errors: map[string]float64{"hit_ratio": 0, "steps": 0}}}
	var got string
	for _, m := range shownMetrics(runs) {
		got += m.key + " "
	}
	if want := "ttft_mean_s hit_ratio steps "; got != want {
		t.Errorf("columns %q, want %q", got, want)
	}
}
