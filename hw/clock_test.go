package hw

import (
	"testing"

	"sparseserve/sim"
	"sparseserve/sim/des"
)

// After a rest prefill's linears are faster, for as long as the card may draw more
// than its limit; decodes and idle time give it back; without figures nothing changes.
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
	p.Clock = Clock{count(0.1, "share"), us(20000), us(60000)}
	if path, err := p.validate(); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	run = device()
	// Some 14.5 ms a step: the second begins at the higher clock and uses it up.
	gain := des.Time(layers * 0.1 * 1e9 * p.LinearsSeconds(m, 2048))
	near := func(what string, got, want des.Time) {
		t.Helper()
		if diff := got - want; diff > layers || diff < -layers {
			t.Errorf("%s: %v less, want %v", what, got, want)
		}
	}
	near("the first chunk", plain.Phases.Linears-run(&chunk, 0).Phases.Linears, gain)
	if second := plain.Phases.Linears - run(&chunk, 0).Phases.Linears; second <= 0 || second >= gain {
		t.Errorf("the second chunk takes %v less, want part of %v", second, gain)
	}
	third := plain.Phases.Linears - run(&chunk, 0).Phases.Linears
	if third > gain/5 {
		t.Errorf("the third chunk takes %v less, want hardly any", third)
	}
	for range 5 { // what a moment without prefill gives back is a moment
		if short := plain.Phases.Linears - run(&chunk, 30*des.Microsecond).Phases.Linears; short > gain/50 {
			t.Errorf("a chunk 30 us after another takes %v less, want hardly any", short)
		}
	}
	if got := run(&decode, 0); got.Phases.Linears != plainDecode.Phases.Linears {
		t.Errorf("a decode's linears take %v, want %v", got.Phases.Linears, plainDecode.Phases.Linears)
	}
	near("after a rest", plain.Phases.Linears-run(&chunk, 60*des.Millisecond).Phases.Linears, gain)
	l := newLinears(p, m)
	if got := l.gained(1e-3, 1, 0.5); got > 1e-3 {
		t.Errorf("%g s gained of a millisecond", got)
	}
	if least, _ := l.seconds(1); l.gained(least, 1, 0.5) != 0 {
		t.Error("what waits for HBM is faster at a higher clock")
	}
	p.Clock.Rest = Figure{}
	if path, err := p.validate(); path != "clock.gain" || err == nil {
		t.Errorf("a gain without a rest: %s, %v", path, err)
	}
}
