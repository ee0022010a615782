package hw

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// A link that is faster all over never makes a run of steps slower.
func TestLaw11MonotoneLink(t *testing.T) {
	m := mustModel(t, "llama3-8b")
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(CardNames()).Draw(t, "card")
		opts := drawOptions(t)
		factor := rapid.Float64Range(1, 8).Draw(t, "factor")
		seed := rapid.Uint32().Draw(t, "moves")
		run := func(factor float64) des.Time {
			p, err := Load(name, engineOf(name), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range []*Figure{&p.Link.Nominal, &p.Link.H2D, &p.Link.D2H, &p.Link.DuplexCopy,
				&p.Link.DuplexKernel, &p.Save.GPURate, &p.Load.Swap.Rate, &p.Load.Swap.RequestRate} {
				f.Value *= factor
			}
			for i := range p.Load.Flash {
				p.Load.Flash[i].Value *= factor
			}
			d, err := NewDevice(p, m, opts)
			if err != nil {
				t.Fatal(err)
			}
			var s sim.Step
			x := seed
			for range 4 {
				x = x*1664525 + 1013904223
				w := sim.Work{Tokens: 1 + int(x>>22), Decodes: 1, DecodeTokens: 2048, ScoredBlocks: 300,
					Sparse: true}
				s.Start += runStep(t, d, &s, m.Layers, &w, int64(x>>8)%3000, int64(x>>16)%3000).Elapsed
			}
			return s.Start
		}
		if slow, fast := run(1), run(factor); fast > slow {
			t.Fatalf("%s %+v: link x %g takes %v, plain takes %v", name, opts, factor, fast, slow)
		}
	})
}

// Law 6: bytes over the link, both directions apart and together, against
// bandwidth x interval, over every layer of random steps.
func TestLaw6LinkBandwidth(t *testing.T) {
	allPairs(t, func(t *rapid.T, p *Profile, m *Model) {
		opts := drawOptions(t)
		d, err := NewDevice(p, m, opts)
		if err != nil {
			t.Fatal(err)
		}
		h2d, d2h := p.Link.H2D.SI(), p.Link.D2H.SI()
		var pushed float64
		var s sim.Step
		for step := range 3 {
			s.Start = d.now + des.Time(rapid.IntRange(0, 1e7).Draw(t, "gap"))
			s.DRAMBytes = logInt(t, 1<<40, "pool")
			if err := d.Begin(&s); err != nil {
				t.Fatal(err)
			}
			for layer := range 4 {
				w := sim.Work{Tokens: int(logInt(t, 4096, "tokens"))}
				mv := kv.Moves{Layer: layer, Loads: logInt(t, 1e5, "loads") - 1,
					Saves: logInt(t, 1e5, "saves") - 1, BlockBytes: 64 * logInt(t, 1<<12, "a token of a block")}
				at, drained := d.now, d.saves.drained
				if err := d.Move(&mv); err != nil {
					t.Fatal(err)
				}
				seconds := (d.now - at).Seconds()
				loaded, saved := float64(mv.Loads*mv.BlockBytes), d.saves.drained-drained
				if loaded > h2d*seconds+1 {
					t.Fatalf("step %d: %g bytes loaded in %gs", step, loaded, seconds)
				}
				if loaded > 0 && saved > d2h*seconds+1 {
					t.Fatalf("step %d: %g bytes saved in %gs", step, saved, seconds)
				}
				if most := math.Max(d.duplex, math.Max(h2d, d2h)); loaded+saved > most*(seconds+2e-9)*
					(1+1e-9)+1 {
					t.Fatalf("step %d: %g bytes both ways in %gs, limit %g", step, loaded+saved, seconds,
						most*seconds)
				}
				at, drained = d.now, d.saves.drained
				if err := d.Compute(layer, &w); err != nil {
					t.Fatal(err)
				}
				pushed += float64(mv.Saves * mv.BlockBytes)
				if saved := d.saves.drained - drained; saved > d2h*(d.now-at).Seconds()+1 {
					t.Fatalf("step %d: %g bytes saved in %v", step, saved, d.now-at)
				}
				if limit := float64(opts.SaveBufferBytes); d.saves.bytes > limit+1 {
					t.Fatalf("step %d: %g bytes queued, buffer holds %g", step, d.saves.bytes, limit)
				}
			}
			if _, err := d.Finish(); err != nil {
				t.Fatal(err)
			}
			if err := d.saves.check(pushed); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// check compares the queue's totals with its entries, and bytes pushed with bytes drained and left.
func (q *saveQueue) check(pushed float64) error {
	var bytes float64
	var work des.Time
	for i := range q.n {
		e := q.ring[(q.head+i)%len(q.ring)]
		bytes += e.bytes
		work += e.work
	}
	if work != q.work || math.Abs(bytes-q.bytes) > 1e-6*pushed+1 {
		return fmt.Errorf("queue says %g bytes, %v; entries hold %g, %v", q.bytes, q.work, bytes, work)
	}
	if math.Abs(q.drained+q.bytes-pushed) > 1e-6*pushed+1 {
		return fmt.Errorf("%g bytes pushed, %g drained and %g left", pushed, q.drained, q.bytes)
	}
	return nil
}
