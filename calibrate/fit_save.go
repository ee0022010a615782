package calibrate

import (
	"fmt"
	"math"

	"sparseserve/hw"
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
	fit, held := splitCopies(all)
	v := &p.Save
	calls := fitCopies(all, fit, link, false)
	calls.figures(from, &v.MemcpyBase, &v.MemcpyCall, &v.MemcpyLong, &v.MemcpyHalf, &v.MemcpyStart, &v.MemcpyWhole)
	v.MemcpyPools = calls.poolRows(all, fit, link, from)
	models := []model{{name: "save.memcpy", fit: fit, held: held, price: price(hw.SaveMemcpy), draw: draw}}

	fit, held = s.of(probeSaveGPU).split(byAxis("block_bytes"), 2, nil)
	k := fitKernel(fit, link)
	p.Save.GPULaunch = from.figure(k.launch*1e6, "us", "one scatter kernel: submit and wait")
	p.Save.GPUFloor = from.figure(k.floor*1e6, "us", "one scatter kernel of few blocks")
	p.Save.GPUBlock = perBlock(k.block, from, "a kernel's own time per block, which small blocks show")
	p.Save.GPURate = from.figure(k.rate*1e-9, "GB/s", "one scatter kernel, blocks anywhere in a pinned pool of 1 GiB")
	models = append(models, model{name: "save.gpu", fit: fit, held: held, price: price(hw.SaveGPU), draw: draw})

	models = append(models, fitContention(s, p, from))
	models = append(models, fitBeside(s, p, from)...)
	return append(models, fitScatter(s, p, from, link))
}

// fitContention finds the share of speed that compute loses while the GPU
// scatter kernel saves a layer beside the next: n layers take
//
//	alone + (n - 1) share save + save
//
// as nothing is computed beside the last layer's save.
func fitContention(s *Samples, p *hw.Profile, from source) model {
	alone := map[string]float64{}
	for _, at := range s.of(probeLayersNone) {
		alone[at.Sizes()] = at.seconds
	}
	save := func(p *hw.Profile, at datum) float64 {
		g := at.model.Geometry(blockTokens)
		return priceSave(p, hw.SaveGPU, at.At("chunk_tokens")/blockTokens*int64(g.KVHeads), g.BlockBytes, basePool, 0)
	}
	fit, held := s.of(probeLayersGPU).split(together, 1, nil)
	var shares []float64
	for _, at := range fit {
		beside := float64(at.At("layers")-1) * save(p, at)
		shares = append(shares, (at.seconds-alone[at.Sizes()]-save(p, at))/beside)
	}
	share := math.Min(math.Max(medianOf(shares).Value, 0.001), 0.99)
	p.Save.Contention = from.figure(share, "share", "prefill of 2048 token chunks whose layers the scatter kernel saves, over prefill alone")
	return model{name: "save.contention", fit: fit, held: held,
		draw: picture{x: func(at datum) float64 { return 1 + float64(at.At("prefix_tokens")) }, xLabel: "tokens before the chunk"},
		price: func(p *hw.Profile, at datum) float64 {
			t := save(p, at)
			return alone[at.Sizes()] + float64(at.At("layers")-1)*p.Save.Contention.SI()*t + t
		}}
}

// slowdowns says in words what transfers of the other kinds take from compute.
func slowdowns(s *Samples) []string {
	alone := map[int64]float64{}
	for _, at := range s.of(probeBesideNone) {
		alone[at.At("tokens")] = at.seconds
	}
	var notes []string
	for _, beside := range []struct{ probe, what string }{
		{probeBesideSave, "the GPU scatter kernel"}, {probeBesideLoad, "FlashH2D"}, {probeBesideFlash, "FlashD2H"},
	} {
		var shares []float64
		for _, at := range s.of(beside.probe) {
			shares = append(shares, at.seconds/alone[at.At("tokens")]-1)
		}
		if len(shares) > 0 {
			notes = append(notes, fmt.Sprintf("a layer's linears and prefill attention beside %s without pause: %+.1f %% time (median of %d sizes)", beside.what, 100*medianOf(shares).Value, len(shares)))
		}
	}
	return notes
}
