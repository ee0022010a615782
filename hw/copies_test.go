package hw

import (
	"math"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/kv"
)

func timeFigure(us float64) Figure {
	return Figure{Value: us, Unit: "us", From: Measured, Source: "a test"}
}

// A memcpy a block costs what its row of the host pool has, straight in log
// size and held beyond; without rows the pool does not matter.
func TestCopiesCostByTheHostPool(t *testing.T) {
	p := mustProfile(t, "h200")
	p.Load.MemcpyPools = nil
	const n, block = 300, 16 << 10
	seconds := func(pool int64) float64 {
		t.Helper()
		s, err := p.LoadSeconds(LoadMemcpy, n, block, pool)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	flat := seconds(1 << 30)
	if got := seconds(64 << 30); got != flat {
		t.Errorf("over 64 GiB: %v s without rows, want %v", got, flat)
	}
	p.Load.MemcpyPools = []PoolTime{{1, p.Load.MemcpyCall},
		{16, timeFigure(p.Load.MemcpyCall.SI()*1e6 + 0.4)}}
	for _, c := range []struct {
		pool int64
		more float64 // us a block
	}{{0, 0}, {1 << 28, 0}, {1 << 30, 0}, {4 << 30, 0.2}, {16 << 30, 0.4}, {96 << 30, 0.4}} {
		if got := (seconds(c.pool) - flat) / n * 1e6; math.Abs(got-c.more) > 1e-6 {
			t.Errorf("over %d bytes: a block takes %.3f us longer, want %.3f", c.pool, got, c.more)
		}
	}
	p.Load.MemcpyPools[1].PoolGiB = 1
	if path, err := wrongKey(p); path != "load.memcpy_pools[1].pool_gib" {
		t.Errorf("rows of one pool: %s, %v", path, err)
	}
}

// The device prices loads by the pool in use at the step's start, and
// notes where that is larger than measured.
func TestDevicePricesCopiesByPool(t *testing.T) {
	p := mustProfile(t, "h200")
	p.Load.MemcpyPools = []PoolTime{{1, timeFigure(2)}, {16, timeFigure(3)}}
	step := func(pool int64) (sim.Timing, *Device) {
		d, err := NewDevice(p, mustModel(t, "lwm-7b"),
			DeviceOptions{LoadEngine: LoadMemcpy, SaveEngine: SaveMemcpy, SaveBufferBytes: 1 << 40})
		if err != nil {
			t.Fatal(err)
		}
		w := sim.Work{Tokens: 8, Decodes: 8, DecodeTokens: 8 * 2048, ScoredBlocks: 8 * 400, Sparse: true}
		return runStep(t, d, &sim.Step{DRAMBytes: pool}, 1, &w, 1000, 1000), d
	}
	small, _ := step(1 << 30)
	large, d := step(32 << 30)
	if more := (large.Phases.LoadStall - small.Phases.LoadStall).Seconds(); math.Abs(
		more-1000e-6) > 1e-6 {
		t.Errorf("1000 loads take %v s longer over the larger pool, want 1 ms", more)
	}
	if notes := d.ExtrapolationNotes(large.Extrapolated); len(notes) != 1 ||
		!strings.Contains(notes[0],
			"memcpy a block: asked for a host pool of 32.0 GiB, measured to 16 GiB") {
		t.Errorf("notes of the larger pool: %q", notes)
	}
}

// A memcpy a block of a step that prefills costs what its own row of the host pool has, whatever it
// costs without prefill and however many the layer saves; without rows, and in other steps, it
// costs that.
func TestSavesDuringPrefill(t *testing.T) {
	const n, block = 2048, 16 << 10
	prefill := sim.Work{Tokens: 2048, Prefill: []sim.Span{{Query: 2048}}}
	decode := sim.Work{Tokens: 8, Decodes: 8, DecodeTokens: 8 * 2048}
	rows := []PoolTime{{1, timeFigure(2)}, {16, timeFigure(2.4)}}
	card := func(alone float64, rows []PoolTime) *Profile {
		p := mustProfile(t, "h200")
		p.Save.MemcpyCall, p.Save.MemcpyOverlappedPools = timeFigure(alone), rows
		return p
	}
	for _, c := range []struct {
		name, engine string
		work         sim.Work
		rows         []PoolTime
		pool         int64
		alone        float64 // us a block
		more         float64 // us a block more than with 1 us and a pool of 1 GiB
	}{
		{"a larger pool", SaveMemcpy, prefill, rows, 4 << 30, 1, 0.2},
		{"larger than measured", SaveMemcpy, prefill, rows, 64 << 30, 1, 0.4},
		{"longer alone", SaveMemcpy, prefill, rows, 1 << 30, 1.5, 0},
		{"longer alone, no rows", SaveMemcpy, prefill, nil, 4 << 30, 1.5, 0.5},
		{"decode, a larger pool", SaveMemcpy, decode, rows, 64 << 30, 1, 0},
		{"decode, longer alone", SaveMemcpy, decode, rows, 1 << 30, 1.5, 0.5},
		{"FlashD2H", SaveFlash, prefill, rows, 64 << 30, 1.5, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			done := func(pool int64, alone float64) float64 {
				d, err := NewDevice(card(alone, c.rows), mustModel(t, "lwm-7b"),
					DeviceOptions{SaveEngine: c.engine, SaveBufferBytes: 1 << 40})
				if err != nil {
					t.Fatal(err)
				}
				return runStep(t, d, &sim.Step{DRAMBytes: pool}, 1, &c.work, 0, n).SavesDone.Seconds()
			}
			if more := (done(c.pool, c.alone) - done(1<<30, 1)) / n * 1e6; math.Abs(more-c.more) > 1e-5 {
				t.Errorf("a block's save takes %v us longer, want %v", more, c.more)
			}
		})
	}
	p := card(2, rows)
	for _, n := range []int64{1, n, 4 * n} { // all but the call is as without prefill
		alone, got, err := p.SaveSeconds(SaveMemcpy, n, block, 1<<30, 0)
		if err != nil || math.Abs(got-alone) > 1e-12 {
			t.Errorf("%d blocks take %v s during prefill, %v, want %v", n, got, err, alone)
		}
	}
	p.Save.MemcpyOverlappedPools = []PoolTime{rows[1], rows[0]}
	if path, err := wrongKey(p); path != "save.memcpy_overlapped_pools[1].pool_gib" {
		t.Errorf("rows that fall: %s, %v", path, err)
	}
}

// Where it is known the locality of a layer's loads, the first of each place costs what one
// over the largest pool does, and the others what one over their request; the pool in
// use does not matter then.
func TestCopiesCostByLocality(t *testing.T) {
	p := mustProfile(t, "h200")
	p.Load.MemcpyPools = []PoolTime{{1, timeFigure(2)}, {4, timeFigure(3)}, {16, timeFigure(4)}}
	stall := func(pool int64, loads ...kv.Moves) float64 {
		t.Helper()
		d, err := NewDevice(p, mustModel(t, "lwm-7b"), DeviceOptions{LoadEngine: LoadMemcpy})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Begin(&sim.Step{DRAMBytes: pool}); err != nil {
			t.Fatal(err)
		}
		for _, m := range loads {
			m.Loads, m.BlockBytes = 1000, 16<<10
			if err := d.Move(&m); err != nil {
				t.Fatal(err)
			}
		}
		timing, err := d.Finish()
		if err != nil {
			t.Fatal(err)
		}
		return timing.Phases.LoadStall.Seconds() * 1e6 / 1000 // us a block
	}
	unknown := stall(1<<30, kv.Moves{})
	for _, c := range []struct {
		pool         int64
		places, span int64
		more         float64 // us a block over a pool of 1 GiB
	}{
		{16 << 30, 0, 0, 2},
		{1 << 30, 1000, 0, 2},              // each its own place
		{16 << 30, 1000, 0, 2},             //
		{16 << 30, 250, 1 << 30, 0.25 * 2}, // the others over 1 GiB
		{1 << 30, 250, 4 << 30, 0.25*2 + 0.75},
		{1 << 30, 2000, 4 << 30, 2}, // no more than all
	} {
		if got := stall(c.pool, kv.Moves{UniquePages: c.places,
			RequestKVBytes: c.span}) - unknown; math.Abs(got-c.more) > 1e-3 {
			t.Errorf("%d places, a span of %d, a pool of %d: %.3f us a block more, want %.3f", c.places,
				c.span, c.pool, got, c.more)
		}
	}
	// One layer's do not determine the next one's.
	if got := stall(1<<30, kv.Moves{UniquePages: 1000}, kv.Moves{}) - 2*unknown; math.Abs(
		got-2) > 1e-3 {
		t.Errorf("a layer of 1000 places and one of which nobody knows: %.3f us more, want 2", got)
	}
}
