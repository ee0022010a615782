package calibrate

import (
	"cmp"
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/hw"
)

// Sizes and laws that the transfer engines share.

// eachTransfer calls f for block sizes and counts at the base pool.
func (p *planner) eachTransfer(f func(block, n int64)) {
	for _, block := range pick(p, []int64{4 * kib, 8 * kib, 16 * kib, 32 * kib, 64 * kib},
		[]int64{8 * kib, 16 * kib, 64 * kib}) {
		for _, n := range p.transferBlocks() {
			if n*block <= p.mostMoved() {
				f(block, n)
			}
		}
	}
}

// transferBlocks returns the block counts.
func (p *planner) transferBlocks() []int64 {
	return pick(p, []int64{16, 64, 256, 1024, 4096}, []int64{16, 256, 2048})
}

// mostMoved is the maximum number of bytes in one transfer.
func (p *planner) mostMoved() int64 { return pick[int64](p, 256, 64) * mib }

// basePool is the pool, in MiB, at which block sizes and counts are varied.
const basePool = 1024

// pools returns the pool sizes, in MiB, that the machine allows, rising, including the base pool.
func (p *planner) pools() []int64 {
	pools := append([]int64{basePool},
		pick(p, []int64{512, 4 * kib, 16 * kib, 64 * kib}, []int64{512})...)
	slices.Sort(pools)
	return slices.DeleteFunc(pools, func(m int64) bool { return m > p.limits.PoolGiB*1024 })
}

func blocks(at observation) float64 { return float64(at.At("blocks")) }

func moved(at observation) float64 { return float64(at.At("blocks") * at.At("block_bytes")) }

func fitCalls(d data, link float64) callsFit {
	fit := func(p []float64) callsFit { return callsFit{base: p[0], call: p[1]} }
	return fit(refine(d, []float64{5e-6, 2e-6}, []bound{callBound, blockBound},
		func(p []float64, at observation) float64 { return fit(p).seconds(at, link) }))
}

// callsFit is t = base + n call + B/link, B = n b bytes, for transfers with one call per block.
type callsFit struct{ base, call float64 }

func (f callsFit) seconds(at observation, link float64) float64 {
	return f.base + blocks(at)*f.call + moved(at)/link
}

// figures writes the fit into a profile.
func (f callsFit) figures(from source, base, call *hw.Figure) {
	*base = from.us(f.base, "submit and wait, once a batch of copies")
	*call = from.us(f.call, "a copy of its own for each block")
}

// kernelFit is t = max(floor, launch + bytes/rate, bytes/link).
type kernelFit struct{ floor, launch, rate float64 }

func (k kernelFit) seconds(at observation, link float64) float64 {
	bytes := moved(at)
	return max(k.floor, k.launch+bytes/k.rate, bytes/link)
}

func fitKernel(d data, link float64) kernelFit {
	first := slices.MinFunc(d,
		func(a, b observation) int { return cmp.Compare(a.seconds, b.seconds) }).seconds
	start := linear(d, one, moved)
	p := refine(d, []float64{first, math.Max(start[0], first/2), 1 / math.Max(start[1], 1/link/2)},
		[]bound{floorBound, callBound, {rateBound.low, link * 1.2}},
		func(p []float64, at observation) float64 {
			return kernelFit{p[0], p[1], p[2]}.seconds(at, link)
		})
	return kernelFit{p[0], p[1], p[2]}
}

func inPool(d data, pool int64) data {
	return d.where(func(at observation) bool { return at.At("pool_mib") == pool })
}

// priceLoad and priceSave price transfers as the modelled device does. Points of saves without
// threads use the profile's number of threads.
func priceLoad(p *hw.Profile, engine string, blocks, blockBytes, poolMiB int64) float64 {
	t, err := p.LoadSeconds(engine, blocks, blockBytes, poolMiB*mib)
	must(err)
	return t
}

func priceSave(p *hw.Profile, engine string, blocks, blockBytes, poolMiB, threads int64) float64 {
	t, err := p.SaveSeconds(engine, blocks, blockBytes, poolMiB*mib, int(threads))
	must(err)
	return t
}

// loadModel and saveModel return fitted transfers of an engine, drawn as a rate over their bytes.
func loadModel(name, engine string, fit, held data) model {
	return model{name: name, fit: fit, held: held, draw: drawMoved,
		price: func(p *hw.Profile, at observation) float64 {
			return priceLoad(p, engine, at.At("blocks"), at.At("block_bytes"), at.At("pool_mib"))
		}}
}

func saveModel(name, engine string, fit, held data) model {
	return model{name: name, fit: fit, held: held, draw: drawMoved,
		price: func(p *hw.Profile, at observation) float64 {
			return priceSave(p, engine, at.At("blocks"), at.At("block_bytes"), at.At("pool_mib"), 0)
		}}
}

var drawMoved = picture{x: moved, xLabel: "bytes moved", rate: moved}
