package calibrate

import (
	"cmp"
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/hw"
)

// mover is an engine that moves blocks between HBM and a pinned pool of the host.
type mover struct {
	probe, engine string
	means         string
	setup         func(*gpuRun, Point) *setup
	pools         bool // the pool is read in place, so its size matters
	price         func(p *hw.Profile, engine string, at observation) float64
	// law fits the engine's figures, with a link of the given rate
	law func(fit data, p *hw.Profile, from source)
}

const (
	probeLoadMemcpy = "load.memcpy"
	probeLoadFlash  = "load.flash"
	probeSaveMemcpy = "save.memcpy"
	probeSaveGPU    = "save.gpu"
)

// movers are the engines whose transfers follow one law. FlashD2H, whose CPU threads scatter, is in
// flash_d2h.go.
var movers = []mover{
	{probe: probeLoadMemcpy, engine: hw.LoadMemcpy, means: "one memcpy a block, from blocks " +
		"anywhere in a pinned pool; " + wall, setup: (*gpuRun).setupLoad,
		price: priceLoad, law: func(fit data, p *hw.Profile, from source) {
			fitCalls(fit, loadLink(p), from, &p.Load.MemcpyCall)
		}},
	{probe: probeLoadFlash, engine: hw.LoadFlash, means: "FlashH2D, one gather kernel; " + wall,
		setup: (*gpuRun).setupLoad, pools: true, price: priceLoad,
		law: fitGatherKernel},
	{probe: probeSaveMemcpy, engine: hw.SaveMemcpy, means: "one memcpy a block, to blocks anywhere " +
		"in a pinned pool; " + wall, setup: (*gpuRun).setupSave,
		price: priceSave, law: func(fit data, p *hw.Profile, from source) {
			fitCalls(fit, saveLink(p), from, &p.Save.MemcpyCall)
		}},
	{probe: probeSaveGPU, engine: hw.SaveGPU, means: "one scatter kernel, to blocks anywhere in a " +
		"pinned pool; " + wall, setup: (*gpuRun).setupSave,
		price: priceSave, law: func(fit data, p *hw.Profile, from source) {
			k := fitKernel(fit, saveLink(p))
			p.Save.GPULaunch = from.us(k.launch, "one scatter kernel: submit and wait")
			p.Save.GPUFloor = from.us(k.floor, "one scatter kernel of few blocks")
			p.Save.GPURate = from.gbps(k.rate,
				"one scatter kernel, blocks anywhere in a pinned pool of 1 GiB")
		}},
}

// moving is the cost of all movers.
type moving struct{}

func (moving) probes() (all []Probe) {
	for _, m := range movers {
		all = append(all, Probe{Name: m.probe, Means: m.means, setup: m.setup,
			Axes: []string{"block_bytes", "blocks", "pool_mib"}, needed: true})
	}
	return all
}

// points vary block size and count at the base pool, and other pools for large transfers.
func (moving) points(p *planner) {
	for _, m := range movers {
		for _, pool := range p.pools() {
			at := func(block, n int64) {
				p.add(point(m.probe, "", block, n, pool))
			}
			switch {
			case pool == basePool:
				p.eachTransfer(at)
			case m.pools:
				for _, block := range pick(p, []int64{4 * kib, 16 * kib, 64 * kib}, []int64{16 * kib}) {
					for _, n := range p.transferBlocks() {
						if n >= 1024 && n*block <= min(p.mostMoved(), pool*mib) {
							at(block, n)
						}
					}
				}
			}
		}
	}
}

// fit needs the link's rates.
func (moving) fit(s *Samples, p *hw.Profile, from source) (models []model) {
	for _, m := range movers {
		all, group, fewest := s.of(m.probe), byAxis("block_bytes"), 2
		if m.pools {
			fewest = 1
			group = func(at observation) string {
				return byAxis("pool_mib")(at) + " " + byAxis("block_bytes")(at)
			}
		} else {
			all = inPool(all, basePool)
		}
		fit, held := all.split(group, fewest, nil)
		m.law(fit, p, from)
		models = append(models, model{name: m.probe, fit: fit, held: held,
			draw:  picture{x: moved, xLabel: "bytes moved", rate: moved},
			price: func(p *hw.Profile, at observation) float64 { return m.price(p, m.engine, at) }})
	}
	return models
}

// fitGatherKernel fits the gather kernel in the base pool, and its rate in each other one.
func fitGatherKernel(fit data, p *hw.Profile, from source) {
	link := loadLink(p)
	k := fitKernel(inPool(fit, basePool), link)
	p.Load.FlashLaunch = from.us(k.launch, "one gather kernel: submit and wait")
	p.Load.FlashFloor = from.us(k.floor, "one gather kernel of few blocks")
	p.Load.Flash = nil
	for _, pool := range fit.values("pool_mib") {
		rate := k.rate
		if pool != basePool {
			rate = refine(inPool(fit, pool), []float64{k.rate}, []bound{{rateBound.low, link * 1.2}},
				func(r []float64, at observation) float64 {
					return kernelFit{k.floor, k.launch, r[0]}.seconds(at, link)
				})[0]
		}
		p.Load.Flash = append(p.Load.Flash,
			hw.PoolRow{PoolGiB: float64(pool) / 1024,
				Figure: from.gbps(rate, "gather kernel, blocks anywhere in a pinned pool of this size")})
	}
}

func loadLink(p *hw.Profile) float64 { return math.Min(p.Link.H2D.SI(), p.Link.Nominal.SI()) }

func saveLink(p *hw.Profile) float64 { return math.Min(p.Link.D2H.SI(), p.Link.Nominal.SI()) }

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

func moved(at observation) float64 { return float64(at.At("blocks") * at.At("block_bytes")) }

// fitCalls fits t = n call + B/link, for transfers with one call per block.
func fitCalls(d data, link float64, from source, call *hw.Figure) {
	blocks := func(at observation) float64 { return float64(at.At("blocks")) }
	fitTerms(d, from, each(blocks, call, 0, "a copy of its own for each block"),
		known(func(at observation) float64 { return moved(at) / link }))
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

// priceLoad and priceSave price a point as the modelled device does. Points of saves without
// threads use the profile's number of threads.
func priceLoad(p *hw.Profile, engine string, at observation) float64 {
	t, err := p.LoadSeconds(engine, at.At("blocks"), at.At("block_bytes"), at.At("pool_mib")*mib)
	must(err)
	return t
}

func priceSave(p *hw.Profile, engine string, at observation) float64 {
	threads := 0
	if at.Probe == probeSaveFlash {
		threads = int(at.At("threads"))
	}
	t, err := p.SaveSeconds(engine, at.At("blocks"), at.At("block_bytes"), at.At("pool_mib")*mib,
		threads)
	must(err)
	return t
}
