package cost

import (
	"math"
	"testing"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

func withClock(p *hw.Profile) {
	p.Clock = hw.Clock{GEMMSteadyRatio: count(0.7, "share"), Settling: us(10_000),
		Gain: []hw.GainRow{{Shape: "llama2-7b", Tokens: 2048, Figure: count(0.1, "share")}}}
}

// After a rest prefill runs at the full clock, then ever slower until the clock has settled; any
// time without prefill lets it rise. Decodes take the same time at any clock.
func TestClock(t *testing.T) {
	p, m := mustProfile(t, "h200"), mustModel(t, "lwm-7b")
	p.Clock = hw.Clock{}
	chunk := sim.Work{Tokens: 2048, Prefill: []sim.Span{{Query: 2048}}}
	decode := sim.Work{Tokens: 1, Decodes: 1, DecodeTokens: 2048}
	const layers = 10
	device := func() func(w *sim.Work, idle des.Time) metrics.Timing {
		d, err := NewDevice(p, m, DeviceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var at des.Time
		return func(w *sim.Work, idle des.Time) metrics.Timing {
			at += idle
			got := runStep(t, d, &sim.Step{Start: at}, layers, w, 0, 0)
			at += got.Elapsed
			return got
		}
	}
	run := device()
	plain, plainDecode := run(&chunk, 0), run(&decode, 0)
	withClock(p)
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	run = device()
	prefill := func(s metrics.Timing) des.Time { return s.Phases.Linears + s.Phases.PrefillAttention }
	attention := Seconds(Of(p, m).PrefillAttention, sim.Work{Prefill: chunk.Prefill})
	lin := Seconds(Of(p, m).GEMM, sim.Work{Tokens: 2048})
	full := prefill(plain) - nanoseconds(layers*0.1*lin)
	low := prefill(plain) -
		nanoseconds(layers*(lin+attention-NewClockProbes(p, m, 32).Chunk(2048, 0)))
	if low <= full {
		t.Fatalf("%v at the low clock, %v at the full one", low, full)
	}
	within := func(what string, got des.Time, least, most float64) {
		t.Helper()
		if way := float64(got-full) / float64(low-full); way < least || way > most {
			t.Errorf("%s takes %v, %.3f of the way from %v to %v, want %g to %g", what, got, way, full, low,
				least, most)
		}
	}
	first := run(&chunk, 0) // some 15 ms
	within("the first chunk", prefill(first), 0.3, 0.7)
	if first.Phases.PrefillAttention <= plain.Phases.PrefillAttention {
		t.Errorf("its attention takes %v, %v at the full clock", first.Phases.PrefillAttention,
			plain.Phases.PrefillAttention)
	}
	within("the second chunk", prefill(run(&chunk, 0)), 0.65, 0.9)
	for range 8 {
		run(&chunk, 0)
	}
	within("the eleventh chunk", prefill(run(&chunk, 0)), 0.85, 1) // norms let the clock rise
	if got := run(&decode, 0); got.Phases != plainDecode.Phases {
		t.Errorf("a decode after chunks: %+v, before them %+v", got.Phases, plainDecode.Phases)
	}
	within("a chunk after 7 ms", prefill(run(&chunk, 7*des.Millisecond)), 0.45, 0.75)
	again := prefill(run(&chunk, 400*des.Millisecond))
	if want := prefill(first); math.Abs(float64(again)/float64(want)-1) > 1e-4 {
		t.Errorf("a chunk after a rest takes %v, the first one %v", again, want)
	}
}

// However long a layer is, its time is that of many short ones of the same work.
func TestClockWithinALayer(t *testing.T) {
	p := mustProfile(t, "h200")
	withClock(p)
	const parts = 1000
	whole := chunk{linears: 3e-3, attention: 1e-3, slope: 2e-3, hot: 1 / 0.7}
	part := chunk{linears: 3e-3 / parts, attention: 1e-3 / parts, slope: 2e-3 / parts, hot: 1 / 0.7}
	one, many := newClock(p), newClock(p)
	lost, sum := one.chunk(&whole), 0.0
	for range parts {
		sum += many.chunk(&part) / parts
	}
	if lost <= 0 || math.Abs(lost/sum-1) > 0.05 || math.Abs(one.f-many.f) > 4e-3 {
		t.Errorf("one layer loses %g, to a clock of %g; a thousand %g, %g", lost, one.f, sum, many.f)
	}
}

// Linears lose their gain with the time constant. A clock without figures changes nothing.
func TestLinearsAfterARest(t *testing.T) {
	p, m := mustProfile(t, "h200"), mustModel(t, "lwm-7b")
	withClock(p)
	c := NewClockProbes(p, m, 32)
	low := Seconds(Of(p, m).GEMM, sim.Work{Tokens: 2048})
	last := 0.9 * low
	for _, ms := range []float64{0, 2, 10, 20, 40} {
		got := c.Linears(2048, 1e-3*ms, 1)
		f := 0.7 + 0.3*math.Exp(-(ms+0.55)/10) // in the middle of the layer
		if want := low * (0.9 + 0.1*(1/f-1)/(1/0.7-1)); got <= last || math.Abs(got/want-1) > 1e-3 {
			t.Errorf("after %g ms linears take %g s, want %g", ms, got, want)
		}
		last = got
	}
	p.Clock = hw.Clock{}
	if got := NewClockProbes(p, m, 32).Linears(2048, 0, 2); math.Abs(got/low-1) > 1e-9 {
		t.Errorf("without figures %g s, want %g", got, low)
	}
}

// What a clock's figures need of one another.
func TestClockFigures(t *testing.T) {
	for _, c := range []struct {
		path string
		bend func(p *hw.Profile)
	}{
		{"clock.gemm_steady_ratio", func(p *hw.Profile) { p.Clock.Settling = hw.Figure{} }},
		{"clock.gain", func(p *hw.Profile) { p.Clock.Gain = nil }},
		{"clock.gain", func(p *hw.Profile) { p.Clock = hw.Clock{Gain: p.Clock.Gain} }},
		{"clock.gain[0].shape", func(p *hw.Profile) { p.Clock.Gain[0].Shape = "llama2-7" }},
		{"clock.gain[1].tokens",
			func(p *hw.Profile) { p.Clock.Gain = append(p.Clock.Gain, p.Clock.Gain[0]) }},
		{"clock.gain[0].value", func(p *hw.Profile) { p.Clock.Gain[0].Value = 1.5 }},
	} {
		p := mustProfile(t, "h200")
		withClock(p)
		c.bend(p)
		if path, err := wrongKey(p); path != c.path || err == nil {
			t.Errorf("want an error of %s, got %q: %v", c.path, path, err)
		}
	}
}
