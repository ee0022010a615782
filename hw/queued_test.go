package hw

import (
	"math"
	"testing"

	"sparseserve/sim"
	"sparseserve/sim/des"
	"sparseserve/sim/kv"
)

// queuedH200 is the H200 with figures of gathers behind other kernels and of the
// copy to the save buffer.
func queuedH200(t *testing.T) *Profile {
	p := mustProfile(t, "h200")
	p.Load.FlashQueued = us(6)
	p.BlockClose = BlockClose{us(4), Figure{1000, "GB/s", Measured, "test"}}
	return p
}

// A gather that nobody waits for to be launched takes its bytes and what is left of
// the launch, and as alone where the GPU has done nothing yet.
func TestQueuedLoads(t *testing.T) {
	w := sim.Work{Tokens: 2, Decodes: 2, DecodeTokens: 2 * 2048, ScoredBlocks: 2 * 128, Sparse: true}
	const blocks, bytes = 500, 16 << 10
	stall := func(p *Profile, opts DeviceOptions, scored bool) float64 {
		d, err := NewDevice(p, mustModel(t, "lwm-7b"), opts)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Begin(&sim.Step{DRAMBytes: 1 << 30}); err != nil {
			t.Fatal(err)
		}
		if scored {
			if err := d.Score(0, &w); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Move(&kv.Moves{Loads: blocks, BlockBytes: bytes}); err != nil {
			t.Fatal(err)
		}
		timing, err := d.Finish()
		if err != nil {
			t.Fatal(err)
		}
		return timing.Phases.LoadStall.Seconds() * 1e6
	}
	p := queuedH200(t)
	p.Host.Load = Figure{}
	alone, err := p.LoadSeconds(LoadFlash, blocks, bytes, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	launch := p.Load.FlashLaunch.SI() * 1e6
	for name, c := range map[string]struct {
		opts   DeviceOptions
		scored bool
		want   float64 // us
	}{
		"first of all":      {DeviceOptions{LoadEngine: LoadFlash, Offload: true}, false, alone * 1e6},
		"the host looks up": {DeviceOptions{LoadEngine: LoadFlash, Offload: true}, true, alone*1e6 - launch + 6},
		"the GPU looks up":  {DeviceOptions{LoadEngine: LoadFlash, Offload: true, GPULookup: true}, true, alone*1e6 - launch + 6},
	} {
		if got := stall(p, c.opts, c.scored); math.Abs(got-c.want) > 0.002 {
			t.Errorf("%s: loads take %.3f us, want %.3f", name, got, c.want)
		}
	}
	p.Load.FlashQueued = Figure{}
	if got := stall(p, DeviceOptions{LoadEngine: LoadFlash, Offload: true, GPULookup: true}, true); math.Abs(got-alone*1e6) > 0.002 {
		t.Errorf("without figures loads take %.3f us, want %.3f", got, alone*1e6)
	}
}

// A layer's saves run beside its attention and most of its linears: where they are
// over when the next layer loads, they slow nothing.
func TestSavesEndBeforeTheNextLayersLoads(t *testing.T) {
	const loads, bytes = 1000, 16 << 10
	run := func(tokens, saves int64) sim.Timing {
		d, err := NewDevice(queuedH200(t), mustModel(t, "lwm-7b"), DeviceOptions{LoadEngine: LoadFlash, SaveEngine: SaveFlash, SaveBufferBytes: 1 << 40})
		if err != nil {
			t.Fatal(err)
		}
		w := sim.Work{Tokens: int(tokens), Prefill: []sim.Span{{Query: int(tokens)}}}
		return runStep(t, d, &sim.Step{}, 8, &w, loads, saves)
	}
	// 8,192 tokens are computed for several times as long as their blocks are on the link.
	if alone, beside := run(8192, 0), run(8192, 8192); beside.Phases.LoadStall != alone.Phases.LoadStall {
		t.Errorf("loads take %v beside saves that are over, %v alone", beside.Phases.LoadStall, alone.Phases.LoadStall)
	}
	// As many blocks of 32 tokens are not.
	alone, beside := run(32, 0), run(32, 8192)
	if beside.Phases.LoadStall <= alone.Phases.LoadStall {
		t.Errorf("loads take %v beside saves that go on, %v alone", beside.Phases.LoadStall, alone.Phases.LoadStall)
	}
	ring := 8 * (4e-6 + 8192*bytes/1000e9)
	if got := beside.Phases.SaveStall.Seconds(); math.Abs(got-ring) > 1e-7 {
		t.Errorf("copies to the save buffer take %.6f s, want %.6f", got, ring)
	}
}

// Saves begin once K and V are computed: not with the layer, and not at its end.
func TestSavesWaitForKAndV(t *testing.T) {
	d, err := NewDevice(queuedH200(t), mustModel(t, "lwm-7b"), DeviceOptions{SaveEngine: SaveFlash, SaveBufferBytes: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	w := sim.Work{Tokens: 2048, Prefill: []sim.Span{{Query: 2048}}}
	timing := runStep(t, d, &sim.Step{}, 1, &w, 0, 2048)
	save, err := queuedH200(t).BesidePrefillSeconds(SaveFlash, 2048, 16<<10, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if begun := timing.SavesDone - des.Time(save*1e9); begun < timing.Phases.Linears/5 || begun > timing.Phases.Linears {
		t.Errorf("saves begin after %v, linears take %v", begun, timing.Phases.Linears)
	}
}
