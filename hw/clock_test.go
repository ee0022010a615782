package hw

import (
	"math"
	"testing"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

func withClock(p *Profile) {
	p.Clock = Clock{GEMMSteadyRatio: count(0.7, "share"), PowerFilter: us(3000),
		FrequencySlew: us(8000), CopyPower: count(0.4, "share"), MemoryBoundPower: count(0.95, "share"),
		Gain: []GainRow{{"llama2-7b", 2048, count(0.1, "share")}}}
}

// After a rest prefill is faster, until the meter has seen it and the clock has fallen to
// what it may have; what draws little gives it back; without figures nothing changes.
func TestClock(t *testing.T) {
	p, m := mustProfile(t, "h200"), mustModel(t, "lwm-7b")
	p.Clock = Clock{}
	chunk := sim.Work{Tokens: 2048, Prefill: []sim.Span{{Query: 2048}}}
	decode := sim.Work{Tokens: 1, Decodes: 1, DecodeTokens: 2048}
	const layers = 10
	opts := DeviceOptions{}
	device := func() func(w *sim.Work, idle des.Time) sim.Timing {
		d, err := NewDevice(p, m, opts)
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
	if err := p.validate(); err != nil {
		t.Fatal(err)
	}
	run = device()
	prefill := func(s sim.Timing) des.Time { return s.Phases.Linears + s.Phases.PrefillAttention }
	lin := Seconds(p.Costs(m).GEMM, sim.Work{Tokens: 2048})
	full := prefill(plain) - nanoseconds(layers*0.1*lin)
	low := prefill(plain) -
		nanoseconds(layers*(lin+Seconds(p.Costs(m).PrefillAttention,
			sim.Work{Prefill: []sim.Span{sim.Span{Query: 2048}}})-NewClockProbes(p, m, 32).Chunk(2048, 0)))
	span := low - full
	if span <= 0 {
		t.Fatalf("%v at the low clock, %v at the full one", low, full)
	}
	within := func(what string, got des.Time, least, most float64) {
		t.Helper()
		if way := float64(got-full) / float64(span); way < least || way > most {
			t.Errorf("%s takes %v, %.3f of the way from %v to %v, want %g to %g", what, got, way, full, low,
				least, most)
		}
	}
	first := run(&chunk, 0) // some 15 ms: the meter sees the limit after 3
	within("the first chunk", prefill(first), 0.1, 0.8)
	if first.Phases.PrefillAttention <= plain.Phases.PrefillAttention {
		t.Errorf("its attention takes %v, %v at the full clock", first.Phases.PrefillAttention,
			plain.Phases.PrefillAttention)
	}
	within("the second chunk", prefill(run(&chunk, 0)), 0.8, 1.2)
	for range 8 {
		run(&chunk, 0)
	}
	// Norms and the like between the chunk's layers draw less.
	within("the eleventh chunk", prefill(run(&chunk, 0)), 0.9, 1)
	for range 5 { // a moment without prefill lets it rise for a moment
		within("a chunk 30 us after another", prefill(run(&chunk, 30*des.Microsecond)), 0.85, 1)
	}
	if got := run(&decode, 0).Phases.Linears; got <= plainDecode.Phases.Linears ||
		float64(got) > float64(plainDecode.Phases.Linears)/leastClock {
		t.Errorf("a decode's linears after chunks take %v, %v at the full clock", got,
			plainDecode.Phases.Linears)
	}
	run = device()
	for range 4 {
		run(&chunk, 0)
	}
	again := prefill(run(&chunk, 400*des.Millisecond))
	if want := prefill(first); math.Abs(float64(again)/float64(want)-1) > 1e-4 {
		t.Errorf("a chunk after a rest takes %v, the first one %v", again, want)
	}

	// What draws less gives the clock back sooner: waiting, and memory-bound kernels.
	after := func(rest func()) des.Time {
		run = device()
		for range 6 {
			run(&chunk, 0)
		}
		rest()
		return prefill(run(&chunk, 0))
	}
	dense := sim.Work{Tokens: 64, Decodes: 64, DecodeTokens: 64 * 8192}
	sparse := sim.Work{Tokens: 4, Decodes: 4, DecodeTokens: 4 * 2048, Sparse: true,
		ScoredBlocks: 4 * 512}
	rounds := sparse
	rounds.Rounds = []sim.Round{{Tokens: 1024}, {Tokens: 1024}}
	opts.Microbatch = 16
	for _, c := range []struct {
		name   string
		figure *Figure
		rest   func()
	}{
		{"10 ms of waiting", &p.Clock.CopyPower, func() { run(&decode, 10*des.Millisecond) }},
		{"dense decode", &p.Clock.MemoryBoundPower, func() { run(&dense, 0) }},
		{"sparse decode", &p.Clock.MemoryBoundPower, func() { run(&sparse, 0) }},
		{"progressive decode", &p.Clock.MemoryBoundPower, func() { run(&rounds, 0) }},
		{"norms", &p.Clock.MemoryBoundPower, func() { run(&chunk, 0) }},
	} {
		*c.figure = count(0.9, "share")
		hot := after(c.rest)
		*c.figure = count(0.1, "share")
		if cool := after(c.rest); cool >= hot || cool < full-layers {
			t.Errorf("after %s a chunk takes %v where that draws little, %v where it draws much", c.name,
				cool, hot)
		}
		p.Clock.CopyPower, p.Clock.MemoryBoundPower = count(0.4, "share"), count(0.95, "share")
	}
}

// The clock follows measured power: a prompt's first chunk after another's last,
// which had more attention and a higher clock, begins at that, and the second
// chunk after a rest finds a lower clock than its own.
func TestClockFollows(t *testing.T) {
	p, m := mustProfile(t, "h200"), mustModel(t, "lwm-7b")
	withClock(p)
	probes := NewClockProbes(p, m, 32)
	k := newClock(p)
	run := func(prefix, layers int) float64 {
		w := probes.chunk(2048, prefix)
		return k.layers(&w, layers) / w.at(w.steady())
	}
	if got := run(8192, 200); math.Abs(got-1) > 0.03 {
		t.Errorf("settled, %g of its time without pause", got)
	}
	high := k.f
	if got := run(0, 2); got >= 0.99 || k.f >= high {
		t.Errorf("after a longer prefix, %g of its time without pause at a clock of %g after %g", got,
			k.f, high)
	}
	run(0, 200)
	if k.f >= high {
		t.Errorf("without a prefix the clock is %g, after one %g", k.f, high)
	}
	if got := run(8192, 2); got <= 1.01 {
		t.Errorf("after a shorter prefix, %g of its time without pause, want more than all", got)
	}
	k = newClock(p)
	run(0, 10)
	if w := probes.chunk(2048, 8192); k.f >= w.steady() {
		t.Errorf("after the first chunk the second begins at a clock of %g, its own is %g", k.f,
			w.steady())
	}
}

// However long a layer is, its time is that of many short ones of the same work.
func TestClockWithinALayer(t *testing.T) {
	p := mustProfile(t, "h200")
	withClock(p)
	const parts = 1000
	whole := chunk{linears: 30e-3, attention: 10e-3, slope: 20e-3, hot: 1 / 0.7}
	part := chunk{linears: 30e-3 / parts, attention: 10e-3 / parts, slope: 20e-3 / parts, hot: 1 / 0.7}
	one, many := newClock(p), newClock(p)
	at, sum := one.layers(&whole, 1), parts*many.layers(&part, parts)
	if math.Abs(at/sum-1) > 5e-4 || math.Abs(one.f-many.f) > 4e-3 ||
		math.Abs(one.measured-many.measured) > 4e-3 {
		t.Errorf("one layer: %g s, to a clock of %g and %g measured; a thousand: %g s, %g and %g", at,
			one.f, one.measured, sum, many.f, many.measured)
	}
	if at <= whole.at(1) {
		t.Errorf("%g s, %g at the full clock", at, whole.at(1))
	}
}

// What a clock's figures need of one another.
func TestClockFigures(t *testing.T) {
	for _, c := range []struct {
		path string
		bend func(p *Profile)
	}{
		{"clock.gemm_steady_ratio", func(p *Profile) { p.Clock.PowerFilter = Figure{} }},
		{"clock.gemm_steady_ratio", func(p *Profile) { p.Clock.FrequencySlew = Figure{} }},
		{"clock.gemm_steady_ratio", func(p *Profile) { p.Clock.CopyPower = Figure{} }},
		{"clock.gain", func(p *Profile) { p.Clock.Gain = nil }},
		{"clock.gain", func(p *Profile) { p.Clock = Clock{Gain: p.Clock.Gain} }},
		{"clock.gemm_steady_ratio",
			func(p *Profile) { p.Clock = Clock{MemoryBoundPower: count(0.1, "share")} }},
		{"clock.memory_bound_power.value",
			func(p *Profile) { p.Clock.MemoryBoundPower = count(1, "share") }},
		{"clock.gain[0].shape", func(p *Profile) { p.Clock.Gain[0].Shape = "llama2-7" }},
		{"clock.gain[1].tokens",
			func(p *Profile) { p.Clock.Gain = append(p.Clock.Gain, p.Clock.Gain[0]) }},
		{"clock.gain[0].value", func(p *Profile) { p.Clock.Gain[0].Value = 1.5 }},
	} {
		p := mustProfile(t, "h200")
		withClock(p)
		c.bend(p)
		if path, err := wrongKey(p); path != c.path || err == nil {
			t.Errorf("want an error of %s, got %q: %v", c.path, path, err)
		}
	}
}
