package cost

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// A link that is faster all over never makes a run of steps slower.
func TestLaw11MonotoneLink(t *testing.T) {
	m := mustModel(t, "llama3-8b")
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(hw.CardNames()).Draw(t, "card")
		opts := drawOptions(t)
		factor := rapid.Float64Range(1, 8).Draw(t, "factor")
		seed := rapid.Uint32().Draw(t, "moves")
		run := func(factor float64) des.Time {
			p, err := hw.Load(name, engineOf(name), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range []*hw.Figure{&p.Link.Nominal, &p.Link.H2D, &p.Link.D2H, &p.Link.DuplexCopy,
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
// bandwidth x interval, over every layer of random steps. Rows of hot buffers and a prefix that is
// loaded by layers share the link.
func TestLaw6LinkBandwidth(t *testing.T) {
	allPairs(t, func(t *rapid.T, p *hw.Profile, m *llm.Model) {
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
			if s.Prefix = (sim.PrefixLoad{}); opts.HotSlots > 0 {
				s.Prefix = sim.PrefixLoad{Bytes: logInt(t, 1<<34, "prefix") - 1, ByLayer: true}
			}
			if err := d.Begin(&s); err != nil {
				t.Fatal(err)
			}
			from, up := d.now, 0.0 // bytes of rows
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
				up += loaded
				d.awaitPrefix(layer)
				if part := float64(s.Prefix.Bytes) * float64(layer+1) / float64(m.Layers); part > 0 &&
					up+part > h2d*((d.now-from).Seconds()+1e-8) {
					t.Fatalf("step %d: %g bytes of rows and %g of a prefix loaded in %v", step, up, part,
						d.now-from)
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

// Law 6 of prefixes that are loaded from DRAM and SSD and saved there, at any times: in every
// interval from when one was asked for to when another has landed, the link moves no more than it
// can in each direction, and the drive reads and writes no more.
func TestLaw6PrefixLinks(t *testing.T) {
	drive, err := hw.LoadDrive("pm9a3")
	if err != nil {
		t.Fatal(err)
	}
	allPairs(t, func(t *rapid.T, p *hw.Profile, m *llm.Model) {
		gpus := float64(rapid.IntRange(1, 8).Draw(t, "GPUs"))
		chunk := logInt(t, 1<<28, "chunk")
		d, err := NewDevice(p, m, DeviceOptions{Prefix: PrefixOptions{Drive: drive, GPUs: gpus,
			Chunk: chunk}})
		if err != nil {
			t.Fatal(err)
		}
		type move struct {
			from, to    des.Time
			up, down    float64 // bytes to HBM, and from it
			read, wrote float64 // by the drive
		}
		var moves []move
		at := des.Time(0)
		for range rapid.IntRange(1, 12).Draw(t, "moves") {
			at += des.Time(logInt(t, 1e9, "gap") - 1)
			bytes := logInt(t, 1<<34, "bytes")
			ssd := rapid.SampledFrom([]int64{0, bytes / 3, bytes}).Draw(t, "of SSD")
			if rapid.Bool().Draw(t, "load") {
				to := d.FetchPrefix(at, sim.PrefixLoad{Bytes: bytes, SSD: ssd})
				moves = append(moves, move{at, to, float64(bytes), 0, float64(ssd) * gpus, 0})
			} else {
				dram, onSSD := d.SavePrefix(at, bytes, ssd)
				moves = append(moves, move{at, dram, 0, float64(bytes), 0, 0})
				if ssd > 0 {
					moves = append(moves, move{at, onSSD, 0, 0, 0, float64(ssd) * gpus})
				}
			}
		}
		rate, reads := drive.Reading()
		for _, a := range moves {
			for _, b := range moves {
				var in move
				for _, c := range moves {
					if c.from >= a.from && c.to <= b.to {
						in.up, in.down = in.up+c.up, in.down+c.down
						in.read, in.wrote = in.read+c.read, in.wrote+c.wrote
					}
				}
				if in == (move{}) {
					continue
				}
				seconds := (b.to - a.from).Seconds() + 1e-9*float64(2*len(moves))
				for what, least := range map[string]float64{"loads": in.up / p.Link.H2D.SI(),
					"saves": in.down / p.Link.D2H.SI(), "SSD reads": in.read / rate,
					"SSD operations": in.read / float64(chunk) / reads,
					"SSD writes":     in.wrote / drive.Write.SI()} {
					if seconds < least*(1-1e-9) {
						t.Fatalf("law 6: %s of %v within %gs, they need %g", what, in, seconds, least)
					}
				}
			}
		}
	})
}
