package hw

import "sparseserve/sim/des"

// cpu is the CPU of a step whose lists the GPU looks up: it keeps its own books of
// the cache and puts a layer's kernels on the stream, one layer after another, while
// the GPU works. It waits for nothing before the step's end, but progressive attention
// has it wait for verdicts. A layer's attention cannot begin before the CPU has got
// there:
//
//	t(layer) = cpu_layer + bytes/cpu_rate + loads cpu_load, bytes = 4 KVHeads selected/32
//
// Where the CPU looks lists up, the GPU waits for it in every layer and the layer's
// round trip says for how long. The zero value is never late.
type cpu struct {
	layer roundTrip
	load  float64 // seconds for each block

	ahead des.Time // when it has done all that was asked of it in this step
}

func newCPU(p *Profile, m *Model, opts *DeviceOptions) cpu {
	if !opts.GPULookup {
		return cpu{}
	}
	return cpu{
		layer: roundTrip{sync: p.Host.CPULayer.optional(), rate: p.Host.CPURate.optional(), each: newRoundTrip(p, m).each},
		load:  p.Host.CPULoad.optional(),
	}
}

// lists adds a layer's lists of so many tokens for each KV head.
func (c *cpu) lists(selected float64) {
	if c.layer.sync > 0 {
		c.ahead += nanoseconds(c.layer.seconds(selected))
	}
}

func (c *cpu) loads(blocks int64) { c.ahead += nanoseconds(float64(blocks) * c.load) }

// CPUSeconds returns what the CPU takes for one layer's lists of so many blocks, so
// many of them missing, where the GPU looks them up.
func (p *Profile) CPUSeconds(blocks, missing int64) float64 {
	r := roundTrip{sync: p.Host.CPULayer.optional(), rate: p.Host.CPURate.optional()}
	return r.ofBytes(4*float64(blocks)) + float64(missing)*p.Host.CPULoad.optional()
}
