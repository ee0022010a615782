package calibrate

import (
	"math"

	"github.com/sparseserve/sparseserve/hw"
)

// flashH2D is loading with one gather kernel.
type flashH2D struct{}

const probeLoadFlash = "load.flash"

func (flashH2D) probes() []Probe {
	return []Probe{{Name: probeLoadFlash, setup: (*gpuRun).setupLoad,
		Means: "FlashH2D, one gather kernel; " + wall,
		Axes:  []string{"block_bytes", "blocks", "pool_mib"}, needed: true}}
}

// points vary block size and count at the base pool, and over others, which the kernel reads
// in place, for large transfers.
func (flashH2D) points(p *planner) {
	for i, pool := range p.pools() {
		at := func(block, n int64) {
			p.addAt(stageLoad, rank{i, 1}, point(probeLoadFlash, "", block, n, pool))
		}
		if pool == basePool {
			p.eachTransfer(at)
			continue
		}
		for _, block := range pick(p, []int64{4 * kib, 16 * kib, 64 * kib}, []int64{16 * kib}) {
			for _, n := range p.transferBlocks() {
				if n >= 1024 && n*block <= min(p.mostMoved(), pool*mib) {
					at(block, n)
				}
			}
		}
	}
}

// fit needs the link's rate.
func (flashH2D) fit(s *Samples, p *hw.Profile, from source) []model {
	link := math.Min(p.Link.H2D.SI(), p.Link.Nominal.SI())
	fit, held := s.of(probeLoadFlash).split(
		func(at observation) string { return byAxis("pool_mib")(at) + " " + byAxis("block_bytes")(at) },
		1, nil)
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
	return []model{loadModel("load.flash", hw.LoadFlash, fit, held)}
}
