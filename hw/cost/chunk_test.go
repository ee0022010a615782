package cost

import (
	"math"
	"testing"
)

// GEMMSteadyRatio linears cost what was measured, with attention both have one clock at which
// they draw the limit, and what waits for HBM the clock does not move.
func TestChunkPower(t *testing.T) {
	p, m := mustProfile(t, "h200"), mustModel(t, "lwm-7b")
	withClock(p)
	l, c := newGEMM(p, m), newChunks(p, m)
	alone, _ := l.of(2048)
	if got := c.of(l.least(2048), alone, 2048, 0); math.Abs(got.at(0.7)/alone-1) > 1e-9 ||
		math.Abs(got.at(1)/alone-0.9) > 1e-9 || math.Abs(got.steady()-0.7) > 1e-9 {
		t.Errorf("alone: %+v, want %g at the full clock and %g at the low one", got, 0.9*alone, alone)
	}
	last := 0.7
	for _, attention := range []float64{0.1, 0.5, 1, 2, 10} {
		attention *= alone
		w := c.of(l.least(2048), alone, 2048, attention)
		f := w.steady()
		if f <= last && last < 1 || f > 1 {
			t.Errorf("%g s of attention: a clock of %g, want between %g and 1", attention, f, last)
		}
		last = f
		linears := 0.9*alone + 0.1*alone*(1/f-1)/(1/0.7-1)
		if got := w.at(f); math.Abs(got/(linears+attention/f)-1) > 1e-9 {
			t.Errorf("%g s of attention: %g s at a clock of %g, want linears of %g and attention of %g",
				attention, got, f, linears, attention/f)
		}
		if power := f * (linears/0.7 + attention/f) / (linears + attention/f); math.Abs(f-1) > 1e-9 &&
			math.Abs(power-1) > 1e-7 {
			t.Errorf("%g s of attention: %g of the power that the card may draw", attention, power)
		}
	}
	one, _ := l.of(1)
	w := c.of(l.least(1), one, 1, 1e-4)
	if got, want := w.at(0.8), one+1e-4/0.8; math.Abs(got/want-1) > 1e-9 || w.steady() != 1 {
		t.Errorf("linears that wait for HBM: %g s at 0.8 of the clock, want %g, and a clock of %g", got,
			want, w.steady())
	}
	// Between, linears by themselves cost what was measured, and a longer chunk less only where its
	// linears do.
	before, beforeAlone := 0.0, 0.0
	probes := NewClockProbes(p, m, 32)
	for n := 1; n <= 4096; n++ {
		alone, _ := l.of(float64(n))
		w := c.of(l.least(float64(n)), alone, float64(n), 0)
		if got := w.at(w.steady()); math.Abs(got/alone-1) > 1e-6 || w.slope < 0 {
			t.Fatalf("%d tokens without attention: %g s of %+v, want %g", n, got, w, alone)
		}
		got := probes.Chunk(n, 2048)
		if got < before*(1-1e-9) && alone > beforeAlone {
			t.Fatalf("a chunk of %d tokens takes %g s, one of a token less %g", n, got, before)
		}
		before, beforeAlone = got, alone
	}
}
