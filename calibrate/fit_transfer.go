package calibrate

import (
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/hw"
)

func blocks(at datum) float64 { return float64(at.At("blocks")) }

func moved(at datum) float64 { return float64(at.At("blocks") * at.At("block_bytes")) }

// weighted returns the x, at least low, with the least squares of (rest -
// factor x) / seconds.
func weighted(d data, terms func(datum) (rest, factor float64), low float64) float64 {
	var above, below float64
	for _, at := range d {
		rest, factor := terms(at)
		w := 1 / (at.seconds * at.seconds)
		above += w * rest * factor
		below += w * factor * factor
	}
	return math.Max(above/below, low)
}

// kernelFit is t = max(floor, launch + n block + bytes/rate, bytes/link).
type kernelFit struct{ floor, launch, block, rate float64 }

func (k kernelFit) seconds(at datum, link float64) float64 {
	bytes := moved(at)
	return max(k.floor, k.launch+k.block*blocks(at)+bytes/k.rate, bytes/link)
}

func fitKernel(d data, link float64) kernelFit {
	first := slices.MinFunc(d, func(a, b datum) int { return compare(a.seconds, b.seconds) }).seconds
	start := linear(d, one, blocks, moved)
	p := refine(d, []float64{first, math.Max(start[0], first/2), math.Max(start[1], 1e-10), 1 / math.Max(start[2], 1/link/2)},
		[]bound{floorBound, callBound, blockBound, {rateBound.low, link * 1.2}},
		func(p []float64, at datum) float64 { return kernelFit{p[0], p[1], p[2], p[3]}.seconds(at, link) })
	return kernelFit{p[0], p[1], p[2], p[3]}
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// perBlock is the optional figure of a time, such as one per block.
func perBlock(seconds float64, from source, what string) hw.Figure {
	if seconds < noBlock {
		return hw.Figure{}
	}
	if seconds >= 1e-6 {
		return from.figure(seconds*1e6, "us", what)
	}
	return from.figure(seconds*1e9, "ns", what)
}

// fitLoad fits the load engines. It needs the link's fit.
func fitLoad(s *Samples, p *hw.Profile, from source) []model {
	link := math.Min(p.Link.H2D.SI(), p.Link.Nominal.SI())
	draw := picture{x: moved, xLabel: "bytes loaded", rate: moved}
	price := func(engine string) func(*hw.Profile, datum) float64 {
		return func(p *hw.Profile, at datum) float64 {
			return priceLoad(p, engine, at.At("blocks"), at.At("block_bytes"), at.At("pool_mib"))
		}
	}

	copied := s.of(probeLoadMemcpy)
	fit, held := splitCopies(copied)
	l := &p.Load
	base := fit
	if byPool(copied) {
		base = inPool(fit, basePool)
	}
	calls := fitCalls(base, link, true)
	l.MemcpyPools = calls.poolRows(copied, fit, link, from)
	calls.figures(from, &l.MemcpyBase, &l.MemcpyCall)
	l.MemcpyEarly, l.MemcpyFirst = perBlock(calls.early, from, "what each of a batch's first blocks takes beside"), hw.Figure{}
	if l.MemcpyEarly.Set() {
		l.MemcpyFirst = from.figure(calls.first, "blocks", "of a batch, that have taken half of what all first ones take beside")
	}
	models := []model{{name: "load.memcpy", fit: fit, held: held, price: price(hw.LoadMemcpy), draw: draw}}

	all := s.of(probeLoadFlash)
	fit, held = all.split(func(at datum) string { return byAxis("pool_mib")(at) + " " + byAxis("block_bytes")(at) }, 1, nil)
	k := fitKernel(inPool(fit, basePool), link)
	p.Load.FlashLaunch = from.figure(k.launch*1e6, "us", "one gather kernel: submit and wait")
	p.Load.FlashFloor = from.figure(k.floor*1e6, "us", "one gather kernel of few blocks")
	p.Load.FlashBlock = perBlock(k.block, from, "a kernel's own time per block, which small blocks show")
	p.Load.Flash = nil
	for _, pool := range fit.values("pool_mib") {
		rate := k.rate
		if pool != basePool {
			rate = refine(inPool(fit, pool), []float64{k.rate}, []bound{{rateBound.low, link * 1.2}}, func(r []float64, at datum) float64 {
				return kernelFit{k.floor, k.launch, k.block, r[0]}.seconds(at, link)
			})[0]
		}
		p.Load.Flash = append(p.Load.Flash, hw.PoolRow{PoolGiB: float64(pool) / 1024, Figure: from.figure(rate*1e-9, "GB/s", "gather kernel, blocks anywhere in a pinned pool of this size")})
	}
	models = append(models, model{name: "load.flash", fit: fit, held: held, price: price(hw.LoadFlash), draw: draw})
	return models
}
