package cost

import (
	"math"
	"testing"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// swapProfile has a kernel of hot buffers of round figures.
func swapProfile(t *testing.T) *hw.Profile {
	p := mustProfile(t, "h200")
	p.GPU.SMs.Value = 100
	p.Load.Swap = hw.SwapCost{Launch: us(4), Scan: us(2),
		Rate:        count(40, "GB/s"),
		RequestRate: count(10, "GB/s")}
	return p
}

// The launch, a walk a wave of requests and the bytes add up: bytes of all requests, or of the one
// that an SM loads by itself. The link binds.
func TestSwapSeconds(t *testing.T) {
	p := swapProfile(t)
	for _, c := range []struct {
		requests, slots int
		misses, bytes   int64
		want            float64 // us
	}{
		{1, 1024, 0, 656, 4 + 2}, {100, 2048, 0, 656, 4 + 4}, {101, 2048, 0, 656, 4 + 8},
		{1, 4096, 1000, 1152, 4 + 8 + 115.2}, {10, 4096, 1000, 1152, 4 + 8 + 288}, {0, 4096, 0, 656, 0},
	} {
		got, err := SwapSeconds(p, c.requests, c.slots, c.misses, c.bytes)
		if err != nil || math.Abs(got*1e6-c.want) > 1e-9 {
			t.Errorf("%+v: %g us, %v", c, got*1e6, err)
		}
	}
	p.Load.Swap.Rate.Value = 1e6
	p.Load.Swap.RequestRate.Value = 1e6
	const rows, bytes = 1 << 20, 1152
	got, err := SwapSeconds(p, 1, 1024, rows, bytes)
	if link := rows * bytes / p.Link.H2D.SI(); err != nil || got < link || got > link+1e-5 {
		t.Errorf("%g s for what the link needs %g s for, %v", got, link, err)
	}
}

// More rows, bytes, slots and requests never take less time, on cards with the figures and without.
func TestSwapIsMonotone(t *testing.T) {
	for _, p := range []*hw.Profile{swapProfile(t), mustProfile(t, "a100-40gb")} {
		last := 0.0
		for i := range 40 {
			n := int64(1) << (i % 10)
			at, err := SwapSeconds(p, int(n), 1024*int(n), 100*n, 16*n)
			if err != nil {
				t.Fatal(err)
			}
			if i%10 > 0 && at < last {
				t.Errorf("%d of everything takes %g s, half of it %g", n, at, last)
			}
			last = at
		}
	}
}

// A layer passes the walk while it scores, and waits for blocks of rows; without hot buffers in use
// it passes nothing. A card without the kernel's figures says so.
func TestDeviceSwapsIn(t *testing.T) {
	const block, loads, layers = 16, 50, 3
	run := func(p *hw.Profile, swapped int, loads, longest int64) metrics.Timing {
		m := mustModel(t, "llama3-8b")
		m.Layers = layers
		d, err := NewDevice(p, m, DeviceOptions{LoadEngine: LoadSwap, SaveEngine: SaveFlash,
			Offload: true, HotSlots: 4096, BlockTokens: block})
		if err != nil {
			t.Fatal(err)
		}
		w := sim.Work{Tokens: 8, Decodes: 8, DecodeTokens: 8 * 2048, Sparse: true, Swapped: swapped}
		if err := d.Begin(&sim.Step{Requests: 8, Sampled: 8}); err != nil {
			t.Fatal(err)
		}
		for layer := range layers {
			for _, err := range []error{d.Score(layer, &w),
				d.Move(&kv.Moves{Layer: layer, Loads: loads, Longest: longest,
					BlockBytes: block * 4096}),
				d.Compute(layer, &w)} {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		timing, err := d.Finish()
		if err != nil {
			t.Fatal(err)
		}
		notes := len(d.ExtrapolationNotes(timing.Extrapolated & (1 << noteSwap)))
		if unmeasured := swapped > 0 && !p.Load.Swap.Rate.Set(); (notes == 1) != unmeasured {
			t.Errorf("%d notes of hot buffers", notes)
		}
		return timing
	}
	p := swapProfile(t)
	none, walk, all := run(p, 0, 0, 0), run(p, 8, 0, 0), run(p, 8, loads, 5)
	if got, want := walk.Elapsed-none.Elapsed, layers*12*des.Microsecond; got != want {
		t.Errorf("the walk takes %v, want %v", got, want)
	}
	const row = block * 4096
	alone := run(p, 8, loads, loads)
	if got, want := (alone.Phases.LoadStall - walk.Phases.LoadStall).Seconds(),
		layers*loads*row/10e9; math.Abs(got-want) > 1e-8 {
		t.Errorf("one request's loads take %g s, want %g", got, want)
	}
	rows := loads * row / 40e9
	got := (all.Phases.LoadStall - walk.Phases.LoadStall).Seconds()
	if math.Abs(got-layers*rows) > 1e-8 {
		t.Errorf("loads take %g s, want %g", got, layers*rows)
	}
	run(mustProfile(t, "a100-40gb"), 8, loads, 0)
}
