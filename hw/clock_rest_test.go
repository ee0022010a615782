package hw

import (
	"math"
	"testing"

	"github.com/sparseserve/sparseserve/sim/des"
)

// What ran since a chunk counts by its time, and what has no figure of its own as copies;
// the clock comes back to the full one and no further.
func TestClockRests(t *testing.T) {
	p := mustProfile(t, "h200")
	withClock(p)
	p.Clock.MemoryBoundPower = count(0.8, "share")
	const gap = 150 * des.Microsecond
	back := func(ran des.Time) clock {
		c := newClock(p)
		c.f, c.measured, c.ran = 0.7, 1, ran
		c.rested(gap)
		if c.at != gap || c.ran != 0 {
			t.Errorf("what ran before %v is not forgotten: %+v", gap, c)
		}
		return c
	}
	// In a piece of the meter's time: it sees power fade in, the clock what it sees.
	meter, pace, took := 3e-3, 8e-3, gap.Seconds()
	want := func(power float64) float64 {
		seen := (power*0.7 - 1) * (took - meter*(1-math.Exp(-took/meter)))
		return 0.7 - seen/pace
	}
	for ran, power := range map[des.Time]float64{0: 0.4, gap: 0.8, gap / 2: 0.6} {
		if got := back(ran); math.Abs(got.f-want(power)) > 1e-9 {
			t.Errorf("of %v, %v of memory-bound kernels leave a clock of %.9f, want %.9f", gap, ran, got.f,
				want(power))
		}
	}
	p.Clock.MemoryBoundPower = Figure{}
	if got := back(gap); math.Abs(got.f-want(0.4)) > 1e-9 {
		t.Errorf("without a figure of their own they leave a clock of %g, copies %g", got.f, want(0.4))
	}
	c := newClock(p)
	c.f, c.measured = 0.7, 1
	c.rested(des.Second)
	if c.f != 1 || math.Abs(c.measured-0.4) > 1e-9 {
		t.Errorf("after a second of copies: %+v", c)
	}
	c.f, c.measured = 1, 3 // what was measured before lowers the clock yet
	c.rested(des.Second + 2*des.Millisecond)
	if c.f >= 0.9 {
		t.Errorf("after much power a clock of %g", c.f)
	}
	c.f, c.measured = 0.2, 50 // no power lowers it to nothing
	c.advance(0.4, 1e6)
	if c.f != leastClock {
		t.Errorf("after far too much power a clock of %g", c.f)
	}
}
