package aic

import (
	"math"
	"testing"
)

// Loads under a power law keep all copies of tokens, but for rounding; some experts have none.
func TestLoadsOfExperts(t *testing.T) {
	for _, tokens := range []int64{1, 4, 8, 64, 4096} {
		e := &expertColumns{Tokens: tokens, TopK: 8, Experts: 256, Distribution: "power_law_1.01"}
		copies, touched := 0.0, 0.0
		e.each(func(experts, tokens float64) {
			touched += experts
			copies += experts * tokens
		})
		if math.Abs(copies/float64(8*tokens)-1) > 0.05 {
			t.Errorf("experts of %d tokens have %g copies, want %d", tokens, copies, 8*tokens)
		}
		if tokens <= 4 && touched < 0.9*float64(8*tokens) {
			t.Errorf("%d tokens go to %g experts, want nearly as many as copies", tokens, touched)
		}
		if most := min(256, float64(8*tokens)); touched > most || tokens == 64 && touched > 0.9*most {
			t.Errorf("%d tokens go to %g experts under a power law, to %g balanced", tokens, touched, most)
		}
	}
}
