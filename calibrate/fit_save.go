package calibrate

import (
	"math"

	"github.com/sparseserve/sparseserve/hw"
)

// fitSave fits the three save engines and what the GPU's takes from compute
// beside it. It needs the link's fit.
func fitSave(s *Samples, p *hw.Profile, from source) []model {
	link := math.Min(p.Link.D2H.SI(), p.Link.Nominal.SI())
	draw := picture{x: moved, xLabel: "bytes saved", rate: moved}
	price := func(engine string) func(*hw.Profile, datum) float64 {
		return func(p *hw.Profile, at datum) float64 {
			return priceSave(p, engine, at.At("blocks"), at.At("block_bytes"), at.At("pool_mib"), 0)
		}
	}

	all := s.of(probeSaveMemcpy)
	fit, held := all.split(byAxis("block_bytes"), 2, nil)
	fitCalls(fit, link, false).figures(from, &p.Save.MemcpyBase, &p.Save.MemcpyCall)
	models := []model{{name: "save.memcpy", fit: fit, held: held, price: price(hw.SaveMemcpy), draw: draw}}

	fit, held = s.of(probeSaveGPU).split(byAxis("block_bytes"), 2, nil)
	k := fitKernel(fit, link)
	p.Save.GPULaunch = from.figure(k.launch*1e6, "us", "one scatter kernel: submit and wait")
	p.Save.GPUFloor = from.figure(k.floor*1e6, "us", "one scatter kernel of few blocks")
	p.Save.GPUBlock = perBlock(k.block, from, "a kernel's own time per block, which small blocks show")
	p.Save.GPURate = from.figure(k.rate*1e-9, "GB/s", "one scatter kernel, blocks anywhere in a pinned pool of 1 GiB")
	models = append(models, model{name: "save.gpu", fit: fit, held: held, price: price(hw.SaveGPU), draw: draw})

	fitContention(s, p, from)
	models = append(models, fitBeside(s, p, from)...)
	return append(models, fitScatter(s, p, from, link))
}

// fitContention finds the share of speed that compute loses while the GPU
// scatter kernel saves a layer beside the next: n layers take
//
//	alone + (n - 1) share save + save
//
// as nothing is computed beside the last layer's save.
func fitContention(s *Samples, p *hw.Profile, from source) {
	alone := map[string]float64{}
	for _, at := range s.of(probeLayersNone) {
		alone[at.Sizes()] = at.seconds
	}
	var shares []float64
	for _, at := range s.of(probeLayersGPU) {
		n, block := layerBlocks(at)
		save := priceSave(p, hw.SaveGPU, n, block, basePool, 0)
		shares = append(shares, (at.seconds-alone[at.Sizes()]-save)/(float64(at.At("layers")-1)*save))
	}
	share := math.Min(math.Max(medianOf(shares).Value, 0.001), 0.99)
	p.Save.Contention = from.figure(share, "share", "prefill of 2048 token chunks whose layers the scatter kernel saves, over prefill alone")
}
