package cost

import (
	"testing"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// What is still on its way to DRAM is loaded once it is there: what steps before saved,
// not this one. The step's first such loads wait for it and the others find it there.
func TestLoadsWaitForLandingSaves(t *testing.T) {
	for name, c := range map[string]struct {
		opts  DeviceOptions
		saved int64 // blocks a layer of the step before
		own   int64 // of this one
	}{
		"memcpy":   {DeviceOptions{LoadEngine: LoadMemcpy, SaveEngine: SaveMemcpy}, 2000, 500},
		"FlashD2H": {DeviceOptions{LoadEngine: LoadFlash, SaveEngine: SaveFlash}, 20000, 20000},
		"the GPU's lookup": {DeviceOptions{LoadEngine: LoadFlash, SaveEngine: SaveFlash,
			GPULookup: true}, 20000, 20000},
		"nothing on its way": {DeviceOptions{LoadEngine: LoadFlash, SaveEngine: SaveFlash}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c.opts.Offload, c.opts.SaveBufferBytes = true, 1<<40
			p := mustProfile(t, "h200")
			step := func(landing bool) (timing metrics.Timing, left des.Time) {
				d, err := NewDevice(p, mustModel(t, "lwm-7b"), c.opts)
				if err != nil {
					t.Fatal(err)
				}
				must := func(err error) {
					t.Helper()
					if err != nil {
						t.Fatal(err)
					}
				}
				first := runStep(t, d, &sim.Step{}, 4, &sim.Work{Tokens: 64}, 0, c.saved)
				w := sim.Work{Tokens: 2, Decodes: 2, DecodeTokens: 2 * 2048, ScoredBlocks: 2 * 400,
					Sparse: true}
				must(d.Begin(&sim.Step{Index: 1, Start: first.Elapsed}))
				for layer := range 3 {
					must(d.Score(layer, &w))
					if layer == 1 {
						left = first.SavesDone - d.now
					}
					loads := int64(64 * layer) // of the first layer none
					must(d.Move(&kv.Moves{Layer: layer, Loads: loads, Saves: c.own, BlockBytes: 16 << 10,
						SavesInFlight: landing && loads > 0}))
					must(d.Compute(layer, &w))
				}
				timing, err = d.Finish()
				must(err)
				return timing, left
			}
			plain, _ := step(false)
			got, left := step(true)
			more := got.Phases.Host - plain.Phases.Host
			if c.saved == 0 && got != plain {
				t.Errorf("%+v, want %+v", got, plain)
			}
			if c.saved > 0 && (left < des.Millisecond || more < left*99/100 || more > left*101/100) {
				t.Errorf("the host takes %v longer, saves of the step before are done in %v", more, left)
			}
		})
	}
}
