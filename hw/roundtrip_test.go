package hw

import (
	"testing"

	"sparseserve/sim"
	"sparseserve/sim/des"
)

// Lists go up between two kernels where nothing is loaded: in each layer that
// selects, by their bytes. With offloading the layer's round trip has them.
func TestListsGoUpBetweenKernels(t *testing.T) {
	for name, c := range map[string]struct {
		opts   DeviceOptions
		sparse bool
		more   des.Time
	}{
		"in HBM":          {DeviceOptions{}, true, 8*des.Microsecond + 4*32*2048/32*des.Nanosecond},
		"dense":           {DeviceOptions{}, false, 0},
		"with offloading": {DeviceOptions{LoadEngine: LoadFlash, SaveEngine: SaveFlash, Offload: true, SaveBufferBytes: 1 << 30}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var got [2]sim.Timing
			for i := range got {
				p := mustProfile(t, "h200")
				if p.Host.ListCopy, p.Host.ListRate = (Figure{}), (Figure{}); i == 1 {
					p.Host.ListCopy, p.Host.ListRate = us(8), Figure{Value: 1, Unit: "GB/s", From: Measured, Source: "a test"}
				}
				d, err := NewDevice(p, mustModel(t, "lwm-7b"), c.opts)
				if err != nil {
					t.Fatal(err)
				}
				got[i] = runStep(t, d, &sim.Step{}, 1, &sim.Work{Tokens: 1, Decodes: 1, DecodeTokens: 2048, ScoredBlocks: 400, Sparse: c.sparse}, 0, 0)
			}
			if more := got[1].Phases.SparseAttention - got[0].Phases.SparseAttention; more != c.more || got[1].Elapsed-got[0].Elapsed != c.more {
				t.Errorf("%v of sparse attention and %v in all, want %v", more, got[1].Elapsed-got[0].Elapsed, c.more)
			}
		})
	}
}
