package hw

import (
	"math"
	"testing"

	"github.com/sparseserve/sparseserve/sim"
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

// The overhead of a layer of decodes is as hot as they are, and is no rest.
func TestClockDuringOverhead(t *testing.T) {
	p, m := mustProfile(t, "h200"), mustModel(t, "lwm-7b")
	withClock(p)
	chunk := sim.Work{Tokens: 2048, Prefill: []sim.Span{{Query: 2048}}}
	decode := sim.Work{Tokens: 2, Decodes: 2, DecodeTokens: 16384}
	const layers = 10
	run := func(gap Figure) (chunks, decodes, back des.Time) {
		p.LayerOverhead = []OverheadRow{{OverheadDense, "", gap}}
		d, err := NewDevice(p, m, DeviceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var at des.Time
		step := func(w *sim.Work) des.Time {
			took := runStep(t, d, &sim.Step{Start: at}, layers, w, 0, 0).Elapsed
			at += took
			return took
		}
		for range 20 {
			chunks += step(&chunk)
		}
		decodes = step(&decode)
		return chunks, decodes, step(&chunk)
	}
	const gap = 100 * des.Microsecond
	chunks, decodes, back := run(us(1e-3))
	longChunks, longDecodes, longBack := run(us(100))
	for _, c := range []struct {
		name      string
		got, want des.Time
		off       float64
	}{
		{"chunks", longChunks, chunks, 1e-9},
		{"decodes", longDecodes, decodes + layers*gap, 1e-3},
		{"a chunk after decodes", longBack, back, 1e-2}, // these were longer
	} {
		if math.Abs(float64(c.got)/float64(c.want)-1) > c.off {
			t.Errorf("with gaps %s take %v, want %v", c.name, c.got, c.want)
		}
	}
}
