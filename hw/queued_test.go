package hw

import (
	"math"
	"testing"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// queuedH200 is the H200 with round figures of the copy to the save buffer.
func queuedH200(t *testing.T) *Profile {
	p := mustProfile(t, "h200")
	p.BlockClose = BlockClose{us(4), Figure{1000, "GB/s", Measured, "test"}}
	return p
}

// A layer's saves overlap with its attention and most of its linears: where they are
// over when the next layer loads, they slow nothing.
func TestSavesEndBeforeTheNextLayersLoads(t *testing.T) {
	const loads, bytes = 1000, 16 << 10
	run := func(tokens, saves int64) metrics.Timing {
		d, err := NewDevice(queuedH200(t), mustModel(t, "lwm-7b"),
			DeviceOptions{LoadEngine: LoadFlash, SaveEngine: SaveFlash, SaveBufferBytes: 1 << 40})
		if err != nil {
			t.Fatal(err)
		}
		w := sim.Work{Tokens: int(tokens), Prefill: []sim.Span{{Query: int(tokens)}}}
		return runStep(t, d, &sim.Step{}, 8, &w, loads, saves)
	}
	// 8,192 tokens are computed for several times as long as their blocks are on the link.
	if alone, overlapped := run(8192, 0),
		run(8192, 8192); overlapped.Phases.LoadStall != alone.Phases.LoadStall {
		t.Errorf("loads take %v during saves that are over, %v alone", overlapped.Phases.LoadStall,
			alone.Phases.LoadStall)
	}
	// As many blocks of 32 tokens are not.
	alone, overlapped := run(32, 0), run(32, 8192)
	if overlapped.Phases.LoadStall <= alone.Phases.LoadStall {
		t.Errorf("loads take %v during saves that go on, %v alone", overlapped.Phases.LoadStall,
			alone.Phases.LoadStall)
	}
	ring := 8 * (4e-6/2 + 8192*bytes/1000e9*4/5)
	if got := overlapped.Phases.SaveStall.Seconds(); math.Abs(got-ring) > 1e-7 {
		t.Errorf("copies to the save buffer take %.6f s, want %.6f", got, ring)
	}
}

// Requests that only digest a prefix launch no copy: one that saves has a block of each KV head.
func TestOnlyThoseThatSaveLaunchACopy(t *testing.T) {
	stall := func(digests int, saves int64) des.Time {
		d, err := NewDevice(queuedH200(t), mustModel(t, "lwm-7b"),
			DeviceOptions{SaveEngine: SaveFlash, SaveBufferBytes: 1 << 40})
		if err != nil {
			t.Fatal(err)
		}
		w := sim.Work{Tokens: 32, Prefill: []sim.Span{{Query: 32}}, Sparse: true, Digests: digests,
			DigestTokens: 6000}
		return runStep(t, d, &sim.Step{}, 1, &w, 0, saves).Phases.SaveStall
	}
	const launch = 4000 / 2                // ns
	one, two := stall(1, 32), stall(2, 32) // of 32 heads
	if one != two || stall(2, 64)-stall(1, 64) != launch {
		t.Errorf("a block a head is copied in %v, and in %v where another digests", one, two)
	}
}

// Saves begin once K and V are computed: not with the layer, and not at its end.
func TestSavesWaitForKAndV(t *testing.T) {
	d, err := NewDevice(queuedH200(t), mustModel(t, "lwm-7b"),
		DeviceOptions{SaveEngine: SaveFlash, SaveBufferBytes: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	w := sim.Work{Tokens: 2048, Prefill: []sim.Span{{Query: 2048}}}
	timing := runStep(t, d, &sim.Step{}, 1, &w, 0, 2048)
	save, err := queuedH200(t).SaveSeconds(SaveFlash, 2048, 16<<10, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if begun := timing.SavesDone - des.Time(save*1e9); begun < timing.Phases.Linears/5 ||
		begun > timing.Phases.Linears {
		t.Errorf("saves begin after %v, linears take %v", begun, timing.Phases.Linears)
	}
}
