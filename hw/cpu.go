package hw

import (
	"sparseserve/sim"
	"sparseserve/sim/des"
)

// cpu is the CPU of a step whose lists the GPU looks up: it keeps its own books of
// the cache and puts a layer's kernels on the stream, one layer after another, while
// the GPU works. It waits for nothing before the step's end, but for saves of blocks that
// it is to load, and progressive attention has it wait for verdicts. A layer's attention cannot begin before the CPU has got
// there:
//
//	t(layer) = cpu_layer + requests cpu_request + bytes/cpu_rate + loads cpu_load, bytes = 4 KVHeads selected/32
//
// Progressive attention, whose lists change their order from step to step and whose
// loads are named in the order of rounds, has figures of its own:
//
//	t(layer) = cpu_psa_layer + requests cpu_psa_request + bytes/cpu_psa_rate + loads cpu_psa_load
//
// with bytes of lists as long as the layer's longest, in whole microbatches; what its
// launches take, and the waits for verdicts, Device.rounds adds.
//
// Where the CPU looks lists up, the GPU waits for it in every layer and the layer's
// round trip says for how long. The zero value is never late.
type cpu struct {
	layer roundTrip
	load  float64 // seconds for each block

	inTurn     roundTrip // of progressive attention, where it has its own
	inTurnLoad float64

	ahead des.Time // when it has done all that was asked of it in this step
}

func newCPU(p *Profile, m *Model, opts *DeviceOptions) cpu {
	if !opts.GPULookup {
		return cpu{}
	}
	h, each := &p.Host, ListBytes(m, 1)
	return cpu{
		layer:      roundTrip{sync: h.CPULayer.optional(), request: h.CPURequest.optional(), rate: h.CPURate.optional(), each: each},
		load:       h.CPULoad.optional(),
		inTurn:     roundTrip{sync: h.CPUPSALayer.optional(), request: h.CPUPSARequest.optional(), rate: h.CPUPSARate.optional(), each: each},
		inTurnLoad: h.CPUPSALoad.optional(),
	}
}

// known says whether there are figures of it.
func (c *cpu) known() bool { return c.layer.sync > 0 || c.inTurn.sync > 0 }

// lists adds a layer's lists; longest are the blocks of progressive attention's
// longest list, 0 for others.
func (c *cpu) lists(w *sim.Work, longest int) {
	switch {
	case longest > 0 && c.inTurn.sync > 0:
		c.ahead += nanoseconds(c.inTurn.of(w.Decodes, float64(w.Decodes*longest*psaBlockTokens)))
	case c.layer.sync > 0:
		c.ahead += nanoseconds(c.layer.of(w.Decodes, float64(w.DecodeTokens)))
	}
}

// loads adds a layer's loads, which may be for the rounds of progressive attention.
func (c *cpu) loads(blocks int64, inRounds bool) {
	each := c.load
	if inRounds && c.inTurn.sync > 0 {
		each = c.inTurnLoad
	}
	c.ahead += nanoseconds(float64(blocks) * each)
}

// CPUSeconds returns what the CPU takes for one layer's lists of so many blocks, of
// some requests, so many of them missing, where the GPU looks them up.
func (p *Profile) CPUSeconds(requests int, blocks, missing int64) float64 {
	h := &p.Host
	r := roundTrip{sync: h.CPULayer.optional(), request: h.CPURequest.optional(), rate: h.CPURate.optional(), each: 1}
	return r.of(requests, 4*float64(blocks)) + float64(missing)*h.CPULoad.optional()
}

// CPUPSASeconds is the same where attention is progressive, of some requests with
// lists as long as the longest.
func (p *Profile) CPUPSASeconds(requests int, blocks, missing int64) float64 {
	h := &p.Host
	r := roundTrip{sync: h.CPUPSALayer.optional(), request: h.CPUPSARequest.optional(), rate: h.CPUPSARate.optional(), each: 1}
	return r.of(requests, 4*float64(blocks)) + float64(missing)*h.CPUPSALoad.optional()
}
