package hw

import (
	"testing"

	"sparseserve/sim"
	"sparseserve/sim/des"
)

func rate(v float64) Figure { return Figure{Value: v, Unit: "GB/s", From: Measured, Source: "a test"} }

// What the host does beside a layer's usual round trip is paid where the device
// has figures of it, and by those it concerns: 4 decodes of a model of 32 KV
// heads in two layers.
func TestHostOfWhatChanges(t *testing.T) {
	const layers = 2
	host := DeviceOptions{LoadEngine: LoadFlash, SaveEngine: SaveFlash, Offload: true, SaveBufferBytes: 1 << 30, Microbatch: 16}
	gpu := host
	gpu.GPULookup = true
	work := sim.Work{Tokens: 4, Decodes: 4, DecodeTokens: 4 * 2048, ScoredBlocks: 1000, Sparse: true}
	dense := sim.Work{Tokens: 4, Decodes: 4, DecodeTokens: 4 * 8192}
	psa := work
	psa.Rounds = []sim.Round{{Tokens: 2048}, {Tokens: 1024}, {Tokens: 10}, {Loads: 0}}
	for name, c := range map[string]struct {
		opts   DeviceOptions
		work   sim.Work
		step   sim.Step
		before func(p *Profile) // of both
		change func(p *Profile)
		want   des.Time
	}{
		"requests of a layer":  {host, work, sim.Step{}, nil, func(p *Profile) { p.Host.LayerRequest = us(3) }, layers * 4 * 3 * des.Microsecond},
		"no lists":             {host, dense, sim.Step{WholeLists: 1}, nil, func(p *Profile) { p.Host.LayerRequest, p.Host.WholeList = us(3), us(1) }, 0},
		"lists looked up":      {host, work, sim.Step{}, nil, func(p *Profile) { p.Host.WholeList = us(1) }, 0},
		"one looked up whole":  {host, work, sim.Step{WholeLists: 1}, nil, func(p *Profile) { p.Host.WholeList = us(1) }, layers * 32 * des.Microsecond},
		"side by side":         {host, work, sim.Step{WholeLists: 3}, nil, func(p *Profile) { p.Host.WholeList = us(1) }, layers * 32 * des.Microsecond},
		"blocks given back":    {host, work, sim.Step{FreedBlocks: 1000}, nil, func(p *Profile) { p.Host.FreedBlock = ns(6) }, 6 * des.Microsecond},
		"of the GPU's lookup":  {gpu, work, sim.Step{FreedBlocks: 1000}, nil, func(p *Profile) { p.Host.FreedBlock = ns(6) }, 6 * des.Microsecond},
		"PSA as others":        {host, psa, sim.Step{}, nil, func(p *Profile) { p.Host.PSARequest, p.Host.PSARate = us(9), rate(1) }, 0},
		"PSA":                  {host, psa, sim.Step{}, func(p *Profile) { p.Host.LayerSync, p.Host.LayerRate = us(1), Figure{} }, func(p *Profile) { p.Host.PSALayer, p.Host.PSARequest, p.Host.PSARate = us(1), us(9), rate(1) }, layers * (4*9*des.Microsecond + 4*3*16*32*4*des.Nanosecond)},
		"top-k does not":       {host, work, sim.Step{}, nil, func(p *Profile) { p.Host.PSALayer, p.Host.PSARequest = us(1000), us(9) }, 0},
		"the CPU's own books":  {gpu, work, sim.Step{WholeLists: 2}, func(p *Profile) { p.Host.CPULayer = us(5000) }, func(p *Profile) { p.Host.WholeList = us(1) }, layers * 32 * des.Microsecond},
		"books kept meanwhile": {gpu, work, sim.Step{WholeLists: 2}, func(p *Profile) { p.Host.CPULayer = ns(1) }, func(p *Profile) { p.Host.WholeList = ns(1) }, 0},
		"a batch measured":     {host, work, sim.Step{}, func(p *Profile) { p.Host.LayerSync, p.Host.LayerRate = us(1), Figure{} }, func(p *Profile) { p.Host.Turns = []TurnRow{{32, 4, 32, us(31)}} }, layers * 30 * des.Microsecond},
		"not of PSA":           {host, psa, sim.Step{}, func(p *Profile) { p.Host.PSALayer = us(1) }, func(p *Profile) { p.Host.Turns = []TurnRow{{32, 4, 32, us(31)}} }, 0},
		"a batch of PSA":       {host, psa, sim.Step{}, func(p *Profile) { p.Host.PSALayer, p.Host.PSARate = us(1), rate(1) }, func(p *Profile) { p.Host.PSATurns = []TurnRow{{32, 4, 20, us(31)}} }, layers * (30*des.Microsecond - 20*1024*des.Nanosecond)},
		"PSA's books":          {gpu, psa, sim.Step{}, func(p *Profile) { p.Host.CPUPSALayer = us(5000) }, func(p *Profile) { p.Host.CPUPSARequest, p.Host.CPUPSARate = us(9), rate(1) }, layers * (4*9*des.Microsecond + 4*3*16*32*4*des.Nanosecond)},
		"PSA's books whole":    {gpu, psa, sim.Step{WholeLists: 2}, func(p *Profile) { p.Host.CPUPSALayer = us(5000) }, func(p *Profile) { p.Host.WholeList = us(1) }, layers * 32 * des.Microsecond},
		"PSA's are no others'": {gpu, work, sim.Step{}, func(p *Profile) { p.Host.CPULayer = us(5000) }, func(p *Profile) { p.Host.CPUPSALayer, p.Host.CPUPSARequest = us(6000), us(9) }, 0},
		"books of no price":    {gpu, work, sim.Step{WholeLists: 2}, nil, func(p *Profile) { p.Host.WholeList = us(1000) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var got [2]sim.Timing
			for i := range got {
				p := mustProfile(t, "h200")
				h := &p.Host
				h.LayerRequest, h.WholeList, h.FreedBlock, h.PSALayer, h.PSARequest, h.PSARate = Figure{}, Figure{}, Figure{}, Figure{}, Figure{}, Figure{}
				h.CPULayer, h.CPURate, h.CPULoad = Figure{}, Figure{}, Figure{}
				h.CPUPSALayer, h.CPUPSARequest, h.CPUPSARate, h.CPUPSALoad, h.Turns, h.PSATurns = Figure{}, Figure{}, Figure{}, Figure{}, nil, nil
				if c.before != nil {
					c.before(p)
				}
				if i == 1 {
					c.change(p)
				}
				d, err := NewDevice(p, mustModel(t, "lwm-7b"), c.opts)
				if err != nil {
					t.Fatal(err)
				}
				w := c.work
				got[i] = runStep(t, d, &c.step, layers, &w, 0, 0)
			}
			more := got[1].Phases.Host - got[0].Phases.Host
			if diff := more - c.want; diff < -layers || diff > layers || got[1].Elapsed-got[0].Elapsed != more {
				t.Errorf("%v of the host and %v in all, want %v", more, got[1].Elapsed-got[0].Elapsed, c.want)
			}
		})
	}
}
