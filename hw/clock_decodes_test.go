package hw

import (
	"math"
	"testing"

	"sparseserve/sim"
	"sparseserve/sim/des"
)

// Decodes take longer behind prefill, by a share of the clock and less from step to
// step, whatever their attention; of a rested card, and without the figure, they do not.
func TestDecodesFeelTheClock(t *testing.T) {
	p, m := mustProfile(t, "h200"), mustModel(t, "lwm-7b")
	withClock(p)
	chunk := sim.Work{Tokens: 2048, Prefill: []sim.Span{{Query: 2048}}}
	steps := func(w *sim.Work, chunks, n int) (all []sim.Timing) {
		d, err := NewDevice(p, m, DeviceOptions{Microbatch: 16})
		if err != nil {
			t.Fatal(err)
		}
		var at des.Time
		for i := range chunks + n {
			work := w
			if i < chunks {
				work = &chunk
			}
			all = append(all, runStep(t, d, &sim.Step{Start: at}, 10, work, 0, 0))
			at += all[i].Elapsed
		}
		return all[chunks:]
	}
	for _, c := range []struct {
		name   string
		w      sim.Work
		phases func(p *sim.Phases) []des.Time
	}{
		{"dense", sim.Work{Tokens: 2, Decodes: 2, DecodeTokens: 16384}, func(p *sim.Phases) []des.Time { return []des.Time{p.Linears, p.DenseAttention} }},
		{"sparse", sim.Work{Tokens: 2, Decodes: 2, DecodeTokens: 4096, Sparse: true, ScoredBlocks: 512},
			func(p *sim.Phases) []des.Time { return []des.Time{p.Linears, p.SparseAttention, p.Scoring} }},
		{"progressive", sim.Work{Tokens: 2, Decodes: 2, DecodeTokens: 2048, Sparse: true, ScoredBlocks: 512, Rounds: []sim.Round{{Tokens: 1024}, {Tokens: 1024}}},
			func(p *sim.Phases) []des.Time { return []des.Time{p.Linears, p.SparseAttention, p.Scoring} }},
	} {
		p.Clock.Decode = Figure{}
		const last = 60
		plain := steps(&c.w, 8, last+1)
		p.Clock.Decode = count(0.2, "share")
		if got := steps(&c.w, 0, 1)[0]; got != plain[0] {
			t.Errorf("%s, of a rested card: %+v, want %+v", c.name, got, plain[0])
		}
		most := 1 + 0.2*(1/0.7-1)
		before := math.Inf(1)
		for i, got := range steps(&c.w, 8, last+1) {
			want := c.phases(&plain[i].Phases)
			for j, phase := range c.phases(&got.Phases) {
				ratio := float64(phase) / float64(want[j])
				switch {
				case i == 0 && (ratio < 1.02 || ratio > most), i == last && ratio != 1:
					t.Errorf("%s, step %d behind prefill: phase %d takes %v, %v at the full clock", c.name, i, j, phase, want[j])
				case j == 0 && ratio > before:
					t.Errorf("%s: linears of step %d take %g of what they do at the full clock, before that %g", c.name, i, ratio, before)
				case j == 0:
					before = ratio
				}
			}
		}
	}

	// That they feel the clock changes nothing of how it comes back.
	p.Clock.Idle, p.Clock.Dense = count(0.1, "share"), count(0.8, "share")
	behind := func() des.Time {
		d, err := NewDevice(p, m, DeviceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var at des.Time
		var got sim.Timing
		for i := range 13 {
			w := &chunk
			if i >= 8 && i < 12 {
				w = &sim.Work{Tokens: 2, Decodes: 2, DecodeTokens: 16384}
				at += 500 * des.Microsecond
			}
			got = runStep(t, d, &sim.Step{Start: at}, 10, w, 0, 0)
			at += got.Elapsed
		}
		return got.Elapsed
	}
	p.Clock.Decode = Figure{}
	want := behind()
	p.Clock.Decode = count(1e-9, "share")
	if got := behind(); math.Abs(float64(got)/float64(want)-1) > 3e-3 { // one takes what ran between chunks as mixed, the other layer by layer
		t.Errorf("a chunk behind decodes takes %v, %v where they do not feel the clock", got, want)
	}

	p.Clock.Decode = count(0.2, "share")
	d, err := NewDevice(p, m, DeviceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var step sim.Step
	decodes := sim.Work{Tokens: 2, Decodes: 2, DecodeTokens: 16384}
	if n := testing.AllocsPerRun(20, func() { step.Start += runStep(t, d, &step, 10, &decodes, 0, 0).Elapsed }); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
}

// Scores and attention of decodes of any kind count as dense attention does, for as long
// as they take, and waiting as waiting; beside a chunk at a low clock they take longer.
func TestClockOfDecodes(t *testing.T) {
	p, m := mustProfile(t, "h200"), mustModel(t, "lwm-7b")
	withClock(p)
	sparse := sim.Work{Tokens: 4, Decodes: 4, DecodeTokens: 4 * 2048, Sparse: true, ScoredBlocks: 4 * 512}
	rounds := sparse
	rounds.Rounds = []sim.Round{{Tokens: 1024}, {Tokens: 1024}}
	for name, w := range map[string]*sim.Work{"dense": {Tokens: 4, Decodes: 4, DecodeTokens: 4 * 8192}, "sparse": &sparse, "progressive": &rounds} {
		d, err := NewDevice(p, m, DeviceOptions{Microbatch: 16})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Begin(&sim.Step{Start: 7 * des.Millisecond, Requests: 4}); err != nil {
			t.Fatal(err)
		}
		if got := d.clock.waited - d.phases.Host; got != 7*des.Millisecond {
			t.Errorf("%v of 7 ms between two steps were waiting", got)
		}
		if w.Sparse {
			if err := d.Score(0, w); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Compute(0, w); err != nil {
			t.Fatal(err)
		}
		if got, want := d.clock.ranDense, d.phases.Scoring+d.phases.DenseAttention+d.phases.SparseAttention; got > want || got < want-5*des.Microsecond { // lists go up besides
			t.Errorf("%s: %v of attention, want %v", name, got, want)
		}
	}
	mixed := sim.Work{Tokens: 2052, Decodes: 4, DecodeTokens: 4 * 8192, Prefill: []sim.Span{{Query: 2048}}}
	attention := func() des.Time {
		d, err := NewDevice(p, m, DeviceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		first := runStep(t, d, &sim.Step{}, 32, &mixed, 0, 0)
		return runStep(t, d, &sim.Step{Start: first.Elapsed}, 32, &mixed, 0, 0).Phases.DenseAttention
	}
	full := attention()
	p.Clock.Decode = count(0.2, "share")
	if got := attention(); float64(got) < 1.02*float64(full) {
		t.Errorf("beside chunks decodes' attention takes %v, %v at the full clock", got, full)
	}
}
