package hw

import (
	"math"
	"testing"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// Blocks that become full cost a launch for each request and the bytes of their K and V, at
// HBM's rate at most; in the device their metadata costs its share of both, and the copy to the
// save buffer the rest, where they are saved. Nothing where the profile does not know.
func TestBlockClose(t *testing.T) {
	p, m := mustProfile(t, "a100-40gb"), mustModel(t, "lwm-7b")
	if got := Seconds(p.Costs(m).BlockClose, sim.Work{Digests: 3, DigestTokens: 4096}); got != 0 {
		t.Errorf("without figures: %g s", got)
	}
	w := sim.Work{Tokens: 2048, Prefill: []sim.Span{{Query: 2048}}, Digests: 2,
		DigestTokens: 2048 + 32, Sparse: true}
	step := func(saves int64, w sim.Work) metrics.Timing {
		d, err := NewDevice(p, m, DeviceOptions{SaveEngine: SaveFlash, SaveBufferBytes: 1 << 40})
		if err != nil {
			t.Fatal(err)
		}
		return runStep(t, d, &sim.Step{}, 2, &w, 0, saves)
	}
	plain := w
	plain.Digests, plain.DigestTokens = 0, 0
	before, beforePlain := step(0, w), step(65, plain)
	p.BlockClose = BlockClose{us(3), Figure{1000, "GB/s", Measured, "test"}}
	// K and V of a token are 2 times 32 heads of 128 fp16 values.
	want := 2*3e-6 + (2048+32)*16384/1e12
	if got := Seconds(p.Costs(m).BlockClose, sim.Work{Digests: 2, DigestTokens: 2048 + 32}); math.Abs(
		got-want) > 1e-12 {
		t.Errorf("two requests: %g s, want %g", got, want)
	}
	after := step(0, w)
	want = 2*3e-6/2 + (2048+32)*16384/1e12/5
	if got := (after.Phases.Scoring - before.Phases.Scoring).Seconds(); math.Abs(got-2*want) > 3e-9 ||
		after.Elapsed-before.Elapsed != after.Phases.Scoring-before.Phases.Scoring {
		t.Errorf("in two layers scoring takes %g s longer and the step %v, want %g", got,
			after.Elapsed-before.Elapsed, 2*want)
	}
	// Blocks that are saved but need no metadata are copied to the save buffer all the same.
	want = 3e-6/2 + 65*16384./1e12*4/5
	if got := (step(65, plain).Phases.SaveStall - beforePlain.Phases.SaveStall).Seconds(); math.Abs(
		got-2*want) > 3e-9 {
		t.Errorf("in two layers saves stall %g s longer, want %g", got, 2*want)
	}
	p.BlockClose.Rate.Value = 1e6
	got, least := Seconds(p.Costs(m).BlockClose, sim.Work{Digests: 1, DigestTokens: 1 << 20}),
		(1<<20)*16384/p.GPU.HBMBandwidth.SI()
	if got < least {
		t.Errorf("%g s beats HBM", got)
	}
	p.BlockClose.Launch = Figure{}
	if path, err := wrongKey(p); path != "block_close.rate" || err == nil {
		t.Errorf("a rate without a launch: %s, %v", path, err)
	}
}
