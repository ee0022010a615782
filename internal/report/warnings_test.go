package report

import "testing"

// The page has warnings in the order of the terminal: what makes every figure misread comes before
// how far the cost model was extrapolated.
func TestWarningsComeBySeverity(t *testing.T) {
	var p page
	p.warn([]said{
		{"linears: asked for 32770 tokens, measured 1 to 4096", "a"},
		{"unstable queue: waits grow", "a"},
		{"preemptions: 721, 120 a request; 56 % of the steps' time computes lost KV again", "b"},
		{"preemptions: 2, 1 a request; 6 % of the steps' time computes lost KV again", "a"},
	}, 2)
	want := []warning{
		{"preemptions: 721, 120 a request; 56 % of the steps' time computes lost KV again (and 1 more " +
			"like it)", "all of them"},
		{"unstable queue: waits grow", "a"},
		{"linears: asked for 32770 tokens, measured 1 to 4096", "a"},
	}
	for i, w := range want {
		if len(p.Warnings) != len(want) || p.Warnings[i] != w {
			t.Fatalf("%+v, want %+v", p.Warnings, want)
		}
	}
}
