package calibrate

import (
	"strings"
	"testing"

	"sparseserve/cuda/live"
)

// Linears that were measured where the live loop runs them are priced there, each
// by its own sample, and judged by a curve that has not seen it; measured at any
// other number of tokens too, the profile knows of no grid.
func TestLinearsOnTheGrid(t *testing.T) {
	b := newFake(truth("a100-40gb"), 0, 1)
	b.bend = func(p Point) float64 { // the last of each four treads is high
		if p.Probe == probeLinears && p.At("tokens")/live.LinearGrid%4 == 3 && p.At("tokens") < 2048 {
			return 1.02
		}
		return 1
	}
	s := measured(t, Full, b)
	c := fitted(t, s)
	if g := c.Profile.LinearGrid; g.SI() != live.LinearGrid {
		t.Errorf("a grid of %+v, want %d tokens", g, live.LinearGrid)
	}
	missed := 0
	for _, at := range s.of(probeLinears) {
		if got := c.Profile.LinearsSeconds(at.model, int(at.At("tokens"))); got < at.seconds*0.979 || got > at.seconds*1.021 {
			t.Errorf("%s is priced %g s and took %g", at.Key(), got, at.seconds)
		} else if got < at.seconds*0.999 || got > at.seconds*1.001 {
			missed++ // where more tokens took less
		}
	}
	if missed > len(s.of(probeLinears))/3 {
		t.Errorf("%d points of %d are not priced by their own samples", missed, len(s.of(probeLinears)))
	}
	for _, m := range c.models {
		if strings.HasPrefix(m.name, "linears.") && m.judge(c.Profile).MaxError < 0.005 {
			t.Errorf("%s is off by %g at most, as if its points were not held out", m.name, m.judge(c.Profile).MaxError)
		}
	}
	s.Records = append(s.Records, Record{point(probeLinears, s.of(probeLinears)[0].Shape, live.LinearGrid+1), []float64{1e-3}})
	if g := fitted(t, s).Profile.LinearGrid; g.Set() {
		t.Errorf("measured at %d tokens, and yet a grid of %+v", live.LinearGrid+1, g)
	}
}
