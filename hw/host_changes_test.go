package hw

import (
	"testing"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// What the host does besides a layer's usual round trip is paid where the device has figures of it,
// and by those it concerns: 4 decodes of a model of 32 KV heads in two layers, each of which has
// 100 loads, 40 blocks that other requests have, and 60 evictions.
func TestHostOfWhatChanges(t *testing.T) {
	const layers = 2
	moves := kv.Moves{Loads: 100, Joined: 40, Evictions: 60, BlockBytes: 16 << 10}
	joined := kv.Moves{Joined: 40, BlockBytes: 16 << 10}
	host := DeviceOptions{LoadEngine: LoadFlash, SaveEngine: SaveFlash, Offload: true,
		SaveBufferBytes: 1 << 30, Microbatch: 16}
	gpu := host
	gpu.GPULookup = true
	work := sim.Work{Tokens: 4, Decodes: 4, DecodeTokens: 4 * 2048, ScoredBlocks: 1000, Sparse: true}
	dense := sim.Work{Tokens: 4, Decodes: 4, DecodeTokens: 4 * 8192}
	for name, c := range map[string]struct {
		opts   DeviceOptions
		work   sim.Work
		step   sim.Step
		moves  kv.Moves
		change func(p *Profile)
		want   des.Time
	}{
		"requests of a layer": {host, work, sim.Step{}, moves,
			func(p *Profile) { p.Host.LayerRequest = us(3) },
			layers * 4 * 3 * des.Microsecond},
		"no lists": {host, dense, sim.Step{}, moves,
			func(p *Profile) { p.Host.LayerRequest = us(3) },
			0},
		"blocks given back": {host, work, sim.Step{FreedBlocks: 1000}, moves,
			func(p *Profile) { p.Host.FreeBlock = ns(6) }, 6 * des.Microsecond},
		"of the GPU's lookup": {gpu, work, sim.Step{FreedBlocks: 1000}, moves,
			func(p *Profile) { p.Host.FreeBlock = ns(6) }, 6 * des.Microsecond},
		"blocks loaded": {host, work, sim.Step{}, moves,
			func(p *Profile) { p.Host.LoadBlock = ns(50) },
			layers * (100 + 40) * 50},
		"blocks joined, none loaded": {host, work, sim.Step{}, joined,
			func(p *Profile) { p.Host.LoadBlock = ns(50) }, layers * 40 * 50},
		"joined in the GPU's tables": {gpu, work, sim.Step{}, joined,
			func(p *Profile) { p.Host.LoadBlock = ns(50) }, 0},
		"evictions": {host, work, sim.Step{}, moves,
			func(p *Profile) { p.Host.EvictBlock = ns(30) },
			layers * 60 * 30},
		"loads of a prefill": {host, dense, sim.Step{}, moves,
			func(p *Profile) { p.Host.LoadBlock = ns(50) },
			0},
		"named by the GPU": {gpu, work, sim.Step{}, moves,
			func(p *Profile) { p.Host.LoadBlock = ns(50) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var got [2]sim.Timing
			for i := range got {
				p := mustProfile(t, "h200")
				h := &p.Host
				h.LayerRequest, h.FreeBlock, h.LoadBlock, h.EvictBlock = Figure{}, Figure{}, Figure{}, Figure{}
				if i == 1 {
					c.change(p)
				}
				d, err := NewDevice(p, mustModel(t, "lwm-7b"), c.opts)
				if err != nil {
					t.Fatal(err)
				}
				w := c.work
				got[i] = runMoves(t, d, &c.step, layers, &w, c.moves)
			}
			more := got[1].Phases.Host - got[0].Phases.Host
			if diff := more - c.want; diff < -layers || diff > layers ||
				got[1].Elapsed-got[0].Elapsed != more {
				t.Errorf("%v of the host and %v in all, want %v", more, got[1].Elapsed-got[0].Elapsed, c.want)
			}
		})
	}
}
