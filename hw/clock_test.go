package hw

import (
	"math"
	"testing"

	"sparseserve/sim"
	"sparseserve/sim/des"
)

func withClock(p *Profile) {
	p.Clock = Clock{Alone: count(0.7, "share"), Burst: us(20000), Rest: us(60000), Gain: []GainRow{{"llama2-7b", 2048, count(0.1, "share")}}}
}

// After a rest prefill is faster, until its linears have used up what the card may
// draw beyond its limit; decodes and idle time give it back; without figures nothing
// changes.
func TestClock(t *testing.T) {
	p, m := mustProfile(t, "h200"), mustModel(t, "lwm-7b")
	p.Clock = Clock{}
	chunk := sim.Work{Tokens: 2048, Prefill: []sim.Span{{Query: 2048}}}
	decode := sim.Work{Tokens: 1, Decodes: 1, DecodeTokens: 2048}
	const layers = 10
	device := func() func(w *sim.Work, idle des.Time) sim.Timing {
		d, err := NewDevice(p, m, DeviceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var at des.Time
		return func(w *sim.Work, idle des.Time) sim.Timing {
			at += idle
			got := runStep(t, d, &sim.Step{Start: at}, layers, w, 0, 0)
			at += got.Elapsed
			return got
		}
	}
	run := device()
	plain, plainDecode := run(&chunk, 0), run(&decode, 0)
	withClock(p)
	if path, err := p.validate(); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	run = device()
	prefill := func(s sim.Timing) des.Time { return s.Phases.Linears + s.Phases.PrefillAttention }
	near := func(what string, got, want des.Time) {
		t.Helper()
		if diff := got - want; diff > layers || diff < -layers {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	lin := p.LinearsSeconds(m, 2048)
	c := newLowClock(p, m)
	l := newLinears(p, m)
	at := c.chunk(&l, lin, 2048, p.PrefillSeconds(m, sim.Span{Query: 2048}))
	alone := lin + p.PrefillSeconds(m, sim.Span{Query: 2048})
	full := prefill(plain) - nanoseconds(layers*0.1*lin)
	low := prefill(plain) + nanoseconds(layers*(at.low+at.attention-alone))
	if low <= full {
		t.Fatalf("%v at the low clock, %v at the full one", low, full)
	}
	// Some 12 ms of linears a step: the second begins at the full clock and uses it up.
	first := run(&chunk, 0)
	near("the first chunk", prefill(first), full)
	near("its attention", first.Phases.PrefillAttention, plain.Phases.PrefillAttention)
	if second := prefill(run(&chunk, 0)); second <= full || second >= low {
		t.Errorf("the second chunk takes %v, want more than %v and less than %v", second, full, low)
	}
	if third := prefill(run(&chunk, 0)); third > low+layers || low-third > (low-full)/50 {
		t.Errorf("the third chunk takes %v, want hardly less than %v", third, low)
	}
	for range 5 { // what a moment without prefill gives back is a moment
		if short := prefill(run(&chunk, 30*des.Microsecond)); low-short > (low-full)/50 {
			t.Errorf("a chunk 30 us after another takes %v, want hardly less than %v", short, low)
		}
	}
	if got := run(&decode, 0); got.Phases.Linears != plainDecode.Phases.Linears {
		t.Errorf("a decode's linears take %v, want %v", got.Phases.Linears, plainDecode.Phases.Linears)
	}
	near("after a rest", prefill(run(&chunk, 60*des.Millisecond)), full)

	// Where waiting gives back more than other rests, idle time is waiting, and dense
	// decode is not.
	p.Clock.RestIdle = us(10000)
	run = device()
	run(&chunk, 0)
	run(&chunk, 0)
	near("after 10 ms of waiting", prefill(run(&chunk, 10*des.Millisecond)), full)
	p.Clock.RestDense = us(1e9)
	batch := sim.Work{Tokens: 64, Decodes: 64, DecodeTokens: 64 * 8192}
	after := func() des.Time {
		run = device()
		run(&chunk, 0)
		run(&chunk, 0)
		run(&batch, 0)
		return prefill(run(&chunk, 0))
	}
	little := after()
	p.Clock.RestDense = us(1000)
	if much := after(); much >= little || much < full-layers {
		t.Errorf("behind dense decode a chunk takes %v where that gives much back, %v where it gives nothing", much, little)
	}
}

// What the card does between prefills says how soon its clock is back.
func TestClockRests(t *testing.T) {
	p := mustProfile(t, "h200")
	withClock(p)
	p.Clock.RestIdle, p.Clock.RestDense = us(30000), us(120000)
	const gap = 3 * des.Millisecond
	back := func(waited, decoded des.Time) des.Time {
		c := newClock(p)
		c.used = c.burst
		c.waited, c.decoded = waited, decoded
		c.rested(gap)
		return c.burst - c.used
	}
	for _, c := range []struct{ waited, decoded, want des.Time }{
		{0, 0, des.Millisecond}, {gap, 0, 2 * des.Millisecond}, {0, gap, des.Millisecond / 2}, {gap / 3, gap / 3, 7 * des.Millisecond / 6},
	} {
		if got := back(c.waited, c.decoded); got < c.want-1 || got > c.want+1 {
			t.Errorf("of %v, %v waiting and %v decoding, give back %v, want %v", gap, c.waited, c.decoded, got, c.want)
		}
	}
	p.Clock.RestIdle, p.Clock.RestDense = Figure{}, Figure{}
	if got := back(gap, 0); got < des.Millisecond-1 || got > des.Millisecond+1 {
		t.Errorf("without a rest of its own waiting gives back %v, want what copies do", got)
	}
}

// Alone linears take what was measured, beside attention they and it have one clock
// between theirs, and what waits for HBM no clock moves.
func TestLowClock(t *testing.T) {
	p, m := mustProfile(t, "h200"), mustModel(t, "lwm-7b")
	withClock(p)
	l, c := newLinears(p, m), newLowClock(p, m)
	alone, _ := l.seconds(2048)
	if got := c.chunk(&l, alone, 2048, 0); math.Abs(got.low/alone-1) > 1e-9 || math.Abs(got.full/alone-0.9) > 1e-9 || got.hot != got.full || got.attention != 0 {
		t.Errorf("alone: %+v, want %g at the full clock and %g at the low one", got, 0.9*alone, alone)
	}
	last := 1 / 0.7
	for _, attention := range []float64{0.1, 0.5, 1, 2, 10} {
		attention *= alone
		got := c.chunk(&l, alone, 2048, attention)
		slow := got.attention / attention
		if slow <= 1 || slow >= last {
			t.Errorf("%g s of attention: %g times as long, want between 1 and %g", attention, slow, last)
		}
		last = slow
		if want := math.Max(got.full, 0.7*alone*slow); math.Abs(got.low/want-1) > 1e-9 {
			t.Errorf("%g s of attention: linears of %g s, want %g", attention, got.low, want)
		}
		// Power, as the third power of the clock, has the limit's mean.
		x := 0.7 * alone / (0.7*alone + attention)
		if power := math.Pow(slow, -3) * (x*math.Pow(0.7, -3) + 1 - x); math.Abs(power-1) > 1e-9 {
			t.Errorf("%g s of attention: %g of the power that the card may draw", attention, power)
		}
	}
	one, _ := l.seconds(1)
	if got := c.chunk(&l, one, 1, 1e-4); got != (chunk{full: one, low: one, attention: 1e-4}) {
		t.Errorf("linears that wait for HBM: %+v, want %g at both clocks and attention of 1e-4", got, one)
	}
	// Between, alone linears take what was measured, and a longer chunk never less.
	before := 0.0
	for n := 1; n <= 4096; n++ {
		alone, _ := l.seconds(float64(n))
		if got := c.chunk(&l, alone, float64(n), 0); math.Abs(got.low/alone-1) > 1e-9 || got.hot > got.full {
			t.Fatalf("%d tokens without attention: %+v, want %g at the low clock", n, got, alone)
		}
		if got := p.ChunkSeconds(m, n, 2048); got < before*(1-1e-9) {
			t.Fatalf("a chunk of %d tokens takes %g s, one of a token less %g", n, got, before)
		} else {
			before = got
		}
	}
}

// What a clock's figures need of one another.
func TestClockFigures(t *testing.T) {
	for _, c := range []struct {
		path string
		bend func(p *Profile)
	}{
		{"clock.alone", func(p *Profile) { p.Clock.Rest = Figure{} }},
		{"clock.gain", func(p *Profile) { p.Clock.Gain = nil }},
		{"clock.gain", func(p *Profile) { p.Clock.Alone, p.Clock.Burst, p.Clock.Rest = Figure{}, Figure{}, Figure{} }},
		{"clock.alone", func(p *Profile) { p.Clock, p.Clock.RestIdle = Clock{}, us(1000) }},
		{"clock.gain[0].shape", func(p *Profile) { p.Clock.Gain[0].Shape = "llama2-7" }},
		{"clock.gain[1].tokens", func(p *Profile) { p.Clock.Gain = append(p.Clock.Gain, p.Clock.Gain[0]) }},
		{"clock.gain[0].value", func(p *Profile) { p.Clock.Gain[0].Value = 1.5 }},
	} {
		p := mustProfile(t, "h200")
		withClock(p)
		c.bend(p)
		if path, err := p.validate(); path != c.path || err == nil {
			t.Errorf("want an error of %s, got %q: %v", c.path, path, err)
		}
	}
}
