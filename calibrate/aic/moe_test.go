package aic

import (
	"math"
	"testing"
)

// Loads under a power law keep all copies of tokens, and no expert has more than there are tokens;
// an expert that few prefer is not touched by every batch.
func TestLoadsOfExperts(t *testing.T) {
	e := &expertColumns{Tokens: 64, TopK: 8, Experts: 256, Hidden: 1024, Inter: 1024, Cut: 1,
		Distribution: "power_law_1.01"}
	sum, touched := 0.0, 0.0
	for _, tokens := range e.loads() {
		sum += tokens * float64(e.Experts) / loadClasses
		touched -= math.Expm1(-tokens) * float64(e.Experts) / loadClasses
		if tokens > float64(e.Tokens) {
			t.Errorf("an expert has %g of %d tokens", tokens, e.Tokens)
		}
	}
	if want := float64(e.Tokens * e.TopK); math.Abs(sum/want-1) > 1e-9 {
		t.Errorf("experts have %g copies, want %g", sum, want)
	}
	if touched > 200 || touched < 100 {
		t.Errorf("%g of 256 experts are touched", touched)
	}
	c := expertCost{each: 1e-6, bytes: 1e15, compute: 1e18, launch: 1e-9, move: 1e15}
	skewed := c.seconds(e, 2)
	e.Distribution = "balanced"
	if even := c.seconds(e, 2); skewed > 0.8*even {
		t.Errorf("experts' fixed times: %g s under a power law, %g balanced: want fewer experts", skewed,
			even)
	}
}
