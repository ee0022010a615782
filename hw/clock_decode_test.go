package hw

import (
	"math"
	"testing"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// atClock returns the phases of one step of decodes at some clock that stands still.
func atClock(t *testing.T, p *Profile, m *Model, w *sim.Work, f float64) sim.Phases {
	t.Helper()
	d, err := NewDevice(p, m, DeviceOptions{Microbatch: 16})
	if err != nil {
		t.Fatal(err)
	}
	d.clock.f, d.clock.measured = f, 1
	return runStep(t, d, &sim.Step{Sampled: w.Decodes}, m.Layers, w, 0, 0).Phases
}

// standing has a clock that hardly moves within a step.
func standing(p *Profile) {
	withClock(p)
	p.Clock.PowerFilter, p.Clock.FrequencySlew = us(1e8), us(1e8)
}

// At a low clock a layer of decodes is longer by its launches, its overhead and what its attention
// and its scores need beyond their bytes; bytes are as fast as they were.
func TestDecodesAtALowClock(t *testing.T) {
	p := mustProfile(t, "h200")
	standing(p)
	const f = 0.75
	for _, name := range []string{"lwm-7b", "llama3-8b"} {
		m := mustModel(t, name)
		layers := float64(m.Layers)
		between := newElementwise(p, m)
		launches := p.LinearLaunch.SI() + between.launch()
		bytes := func(w *sim.Work, s Stream) float64 {
			return float64(w.DecodeTokens*m.LayerKVBytesPerToken()) / s.Rate.SI()
		}
		dense := sim.Work{Tokens: 2, Decodes: 2, DecodeTokens: 16384}
		sparse := sim.Work{Tokens: 2, Decodes: 2, DecodeTokens: 4096, Sparse: true, ScoredBlocks: 512}
		scored := float64(sparse.ScoredBlocks*int64(m.KVHeads)*m.MetaBytesPerBlock()) /
			p.Scoring.Rate.SI()
		for _, c := range []struct {
			kind      string
			w         *sim.Work
			phase     func(*sim.Phases) des.Time
			latencies func(full float64) float64 // of a layer, seconds
		}{
			{"linears", &dense, func(p *sim.Phases) des.Time { return p.Linears },
				func(float64) float64 { return launches + p.LayerOverheadSeconds(OverheadDense, "") }},
			{"dense", &dense, func(p *sim.Phases) des.Time { return p.DenseAttention },
				func(full float64) float64 { return full - bytes(&dense, p.DenseDecode) }},
			{"sparse", &sparse, func(p *sim.Phases) des.Time { return p.SparseAttention },
				func(full float64) float64 { return full - bytes(&sparse, p.SparseDecode) }},
			{"scores", &sparse, func(p *sim.Phases) des.Time { return p.Scoring },
				func(full float64) float64 { return full - scored }},
		} {
			full, low := atClock(t, p, m, c.w, 1), atClock(t, p, m, c.w, f)
			at, got := c.phase(&full).Seconds(), c.phase(&low).Seconds()
			want := at + layers*c.latencies(at/layers)*(1/f-1)
			if got <= at || math.Abs(got/want-1) > 1e-3 {
				t.Errorf("%s, %s: %g s at a clock of %g, %g at the full one, want %g", name, c.kind, got, f,
					at, want)
			}
			if full.Host != low.Host {
				t.Errorf("%s: the host's time is %v at a low clock, %v at the full one", name, low.Host,
					full.Host)
			}
		}
	}
}

// The lower the clock, the longer is any step of decodes, and never by more than its cycles; rounds
// of progressive attention are no exception. A card without figures of a clock has none to lose.
func TestLowClocksOfAnyDecodes(t *testing.T) {
	p, m := mustProfile(t, "h200"), mustModel(t, "llama3-8b")
	standing(p)
	rounds := sim.Work{Tokens: 3, Decodes: 3, DecodeTokens: 3 * 1024, Sparse: true, ScoredBlocks: 768,
		Rounds: []sim.Round{{Tokens: 3 * 512}, {Tokens: 3 * 512}}}
	for _, w := range []sim.Work{
		{Tokens: 1, Decodes: 1, DecodeTokens: 1},
		{Tokens: 64, Decodes: 64, DecodeTokens: 1 << 20},
		{Tokens: 8, Decodes: 8, DecodeTokens: 8 * 2048, Sparse: true, ScoredBlocks: 1 << 14},
		rounds,
	} {
		phases := atClock(t, p, m, &w, 1)
		full := phases.Sum()
		for last, f := full, 0.9; f > 0.3; f -= 0.2 {
			phases := atClock(t, p, m, &w, f)
			if got := phases.Sum(); got <= last || float64(got) > float64(full)/f*(1+1e-6) {
				t.Errorf("%+v: %v at a clock of %g, %v at the full one, %v at one above", w, got, f, full, last)
			} else {
				last = got
			}
		}
	}
	p.Clock = Clock{}
	full, low := atClock(t, p, m, &rounds, 1), atClock(t, p, m, &rounds, 0.5)
	if full != low {
		t.Errorf("without figures: %+v, then %+v", full, low)
	}
}

// Decodes after a prompt become faster step by step, until they are as fast as before it.
func TestDecodesAfterAPrompt(t *testing.T) {
	p, m := mustProfile(t, "h200"), mustModel(t, "llama3-8b")
	d, err := NewDevice(p, m, DeviceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var at des.Time
	step := func(w *sim.Work) des.Time {
		took := runStep(t, d, &sim.Step{Start: at, Sampled: 1}, m.Layers, w, 0, 0).Elapsed
		at += took
		return took
	}
	decode := sim.Work{Tokens: 1, Decodes: 1, DecodeTokens: 8192}
	before := step(&decode)
	step(&sim.Work{Tokens: 8192, Prefill: []sim.Span{{Query: 8192}}})
	first, ended := step(&decode), at
	if first <= before {
		t.Errorf("a decode takes %v before a prompt, %v after it", before, first)
	}
	for last := first; last > before; {
		next := step(&decode)
		if next > last {
			t.Fatalf("a decode takes %v after one of %v", next, last)
		}
		if at > ended+des.Second {
			t.Fatalf("a second after a prompt decodes take %v, before it %v", next, before)
		}
		last = next
	}
}
