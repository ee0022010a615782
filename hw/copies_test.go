package hw

import (
	"math"
	"testing"

	"github.com/sparseserve/sparseserve/sim"
)

func timeFigure(us float64) Figure {
	return Figure{Value: us, Unit: "us", From: Measured, Source: "a test"}
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
