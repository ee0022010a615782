package cost

import (
	"testing"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// A layer's saves overlap with its attention and most of its linears: where they are
// over when the next layer loads, they slow nothing.
func TestSavesEndBeforeTheNextLayersLoads(t *testing.T) {
	const loads = 1000
	run := func(tokens, saves int64) metrics.Timing {
		d, err := NewDevice(mustProfile(t, "h200"), mustModel(t, "lwm-7b"),
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
}

// Saves begin once K and V are computed: not with the layer, and not at its end.
func TestSavesWaitForKAndV(t *testing.T) {
	d, err := NewDevice(mustProfile(t, "h200"), mustModel(t, "lwm-7b"),
		DeviceOptions{SaveEngine: SaveFlash, SaveBufferBytes: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	w := sim.Work{Tokens: 2048, Prefill: []sim.Span{{Query: 2048}}}
	timing := runStep(t, d, &sim.Step{}, 1, &w, 0, 2048)
	save, err := SaveSeconds(mustProfile(t, "h200"), SaveFlash, 2048, 16<<10, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if begun := timing.SavesDone - des.Time(save*1e9); begun < timing.Phases.Linears/5 ||
		begun > timing.Phases.Linears {
		t.Errorf("saves begin after %v, linears take %v", begun, timing.Phases.Linears)
	}
}
