package hw

import (
	"testing"

	"sparseserve/sim"
	"sparseserve/sim/des"
)

// Each block that a layer loads takes the CPU's time, and nothing else changes.
func TestLoadsTakeTheHost(t *testing.T) {
	var got [2]sim.Timing
	for i := range got {
		p := mustProfile(t, "h200")
		if p.Host.Load = (Figure{}); i == 1 {
			p.Host.Load = us(0.25)
		}
		d, err := NewDevice(p, mustModel(t, "lwm-7b"), DeviceOptions{LoadEngine: LoadFlash, SaveEngine: SaveFlash, Offload: true, SaveBufferBytes: 1 << 30})
		if err != nil {
			t.Fatal(err)
		}
		got[i] = runStep(t, d, &sim.Step{}, 1, &sim.Work{Tokens: 1, Decodes: 1, DecodeTokens: 2048, ScoredBlocks: 400, Sparse: true}, 100, 0)
	}
	if want := 25 * des.Microsecond; got[1].Phases.Host-got[0].Phases.Host != want || got[1].Elapsed-got[0].Elapsed != want || got[1].Phases.LoadStall != got[0].Phases.LoadStall {
		t.Errorf("100 loads: %+v and %+v, want %v more of the host's and of the step", got[0], got[1], want)
	}
}
