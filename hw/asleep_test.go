package hw

import (
	"testing"

	"sparseserve/sim"
	"sparseserve/sim/des"
	"sparseserve/sim/kv"
)

// A layer's round trip takes longer behind a layer that took longer than the threads
// that share the lookup wait: not a step's first, few lists less, and none where the
// layers before are short.
func TestLookupBehindALongLayer(t *testing.T) {
	const layers = 4
	for name, c := range map[string]struct {
		model   string
		decodes int
		loads   int64
		late    des.Time // of each of them but the first
	}{
		"short layers": {"lwm-7b", 2, 10, 0},
		"long layers":  {"lwm-7b", 4, 1000, 50 * des.Microsecond},
		"few lists":    {"llama3-8b", 4, 1000, 50 * des.Microsecond / 4},
		"more lists":   {"lwm-7b", 8, 1000, 50 * des.Microsecond},
	} {
		t.Run(name, func(t *testing.T) {
			var got [2]sim.Timing
			for i := range got {
				p := mustProfile(t, "h200")
				if p.Host.Asleep = (Figure{}); i == 1 {
					p.Host.Asleep = us(50)
				}
				d, err := NewDevice(p, mustModel(t, c.model), DeviceOptions{LoadEngine: LoadMemcpy, SaveEngine: SaveMemcpy, Offload: true, SaveBufferBytes: 1 << 30})
				if err != nil {
					t.Fatal(err)
				}
				w := sim.Work{Tokens: c.decodes, Decodes: c.decodes, DecodeTokens: int64(c.decodes) * 2048, ScoredBlocks: int64(c.decodes) * 400, Sparse: true}
				for step := range 2 { // a step's first layer has no layer before it
					got[i] = runStep(t, d, &sim.Step{Index: int64(step), Start: d.now}, layers, &w, c.loads, 0)
				}
			}
			want := (layers - 1) * c.late
			if more := got[1].Phases.Host - got[0].Phases.Host; more != want || got[1].Elapsed-got[0].Elapsed != want {
				t.Errorf("the host takes %v longer and the step %v, want %v", more, got[1].Elapsed-got[0].Elapsed, want)
			}
		})
	}
	a := asleep{late: 1e-9, since: 1}
	if wait := nanoseconds(kv.HelpersAwake.Seconds()); a.wakes(1+wait, listsShared) != 0 || a.wakes(2+wait, listsShared) != 1 {
		t.Error("threads sleep when they have waited for HelpersAwake, not sooner and not later")
	}
}
