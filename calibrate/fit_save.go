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
			return priceSave(p, engine, at.At("blocks"), at.At("block_bytes"), 0)
		}
	}

	fit, held := s.of(probeSaveMemcpy).split(byAxis("block_bytes"), 2, nil)
	base, call := fitCalls(fit, link)
	p.Save.MemcpyBase = from.figure(base*1e6, "us", "submit and wait, once a batch of copies")
	p.Save.MemcpyCall = from.figure(call*1e6, "us", "a copy of its own for each block")
	models := []model{{name: "save.memcpy", fit: fit, held: held, price: price(hw.SaveMemcpy), draw: draw}}

	fit, held = s.of(probeSaveGPU).split(byAxis("block_bytes"), 2, nil)
	k := fitKernel(fit, link)
	p.Save.GPULaunch = from.figure(k.launch*1e6, "us", "one scatter kernel: submit and wait")
	p.Save.GPUFloor = from.figure(k.floor*1e6, "us", "one scatter kernel of few blocks")
	p.Save.GPUBlock = perBlock(k.block, from, "a kernel's own time per block, which small blocks show")
	p.Save.GPURate = from.figure(k.rate*1e-9, "GB/s", "one scatter kernel, blocks anywhere in a pinned pool of 1 GiB")
	models = append(models, model{name: "save.gpu", fit: fit, held: held, price: price(hw.SaveGPU), draw: draw})

	models = append(models, fitContention(s, p, from), fitScatter(s, p, from, link))
	return models
}

// scatterFit is FlashD2H's t = call + threads wake + n block + bytes / min(link, scatter) +
// min(bytes, chunk) / max(link, scatter).
type scatterFit struct{ call, wake, block, chunk float64 }

func (f scatterFit) seconds(at datum, scatter, link float64) float64 {
	bytes := moved(at)
	return f.call + f.wake*float64(at.At("threads")) + f.block*blocks(at) + bytes/math.Min(link, scatter) + math.Min(bytes, f.chunk)/math.Max(link, scatter)
}

// fitScatter fits FlashD2H. Call, wake and block are common to all threads;
// they and the threads' rates take turns, for each of some chunks, which are
// powers of two.
func fitScatter(s *Samples, p *hw.Profile, from source, link float64) model {
	fit, held := s.of(probeSaveFlash).split(func(at datum) string {
		return byAxis("threads")(at) + " " + byAxis("block_bytes")(at)
	}, 1, nil)
	threads := fit.values("threads")
	var f scatterFit
	var rates map[int64]float64
	least := infinite
	for chunk := 0.25 * mib; chunk <= 32*mib; chunk *= 2 {
		g, r := scatterWith(chunk, fit, threads, link, 3)
		cost := 0.0
		for _, at := range fit {
			cost += math.Pow(math.Log(g.seconds(at, r[at.At("threads")], link)/at.seconds), 2)
		}
		if cost < least {
			f, rates, least = g, r, cost
		}
	}
	f, rates = scatterWith(f.chunk, fit, threads, link, 12)
	p.Save.FlashCall = from.figure(f.call*1e6, "us", "FlashD2H: one copy into staging")
	p.Save.FlashWake = perBlock(f.wake, from, "FlashD2H: waking a thread")
	p.Save.FlashBlock = perBlock(f.block, from, "FlashD2H: the CPU's own time per block, which small blocks show")
	p.Save.FlashChunk = from.figure(f.chunk/mib, "MiB", "FlashD2H: what is copied before the first block is scattered")
	p.Save.Scatter = nil
	best := threads[0]
	for _, n := range threads {
		p.Save.Scatter = append(p.Save.Scatter, hw.ScatterRow{Threads: int(n), Figure: from.figure(rates[n]*1e-9, "GB/s", "FlashD2H: the CPU's scatter beside the copy, from the time of both")})
		if math.Min(rates[n], link) > math.Min(rates[best], link)*1.02 {
			best = n
		}
	}
	p.Save.Threads = from.figure(float64(best), "threads", "the fewest beyond which saving gains no more than 2 %")
	return model{name: "save.scatter", fit: fit, held: held, draw: picture{x: moved, xLabel: "bytes saved", rate: moved},
		price: func(p *hw.Profile, at datum) float64 {
			return priceSave(p, hw.SaveFlash, at.At("blocks"), at.At("block_bytes"), at.At("threads"))
		}}
}

// scatterWith fits all but the chunk, in so many rounds.
func scatterWith(chunk float64, fit data, threads []int64, link float64, rounds int) (scatterFit, map[int64]float64) {
	f, rates := scatterFit{20e-6, 1e-6, 1e-8, chunk}, map[int64]float64{}
	for range rounds {
		for _, n := range threads {
			mine := fit.where(func(at datum) bool { return at.At("threads") == n })
			start := rates[n]
			if start == 0 {
				start = link / 2
			}
			rates[n] = refine(mine, []float64{start}, []bound{{rateBound.low, 4 * link}}, func(r []float64, at datum) float64 {
				return f.seconds(at, r[0], link)
			})[0]
		}
		before := f
		c := refine(fit, []float64{f.call, f.wake, f.block}, []bound{callBound, blockBound, blockBound}, func(c []float64, at datum) float64 {
			return scatterFit{c[0], c[1], c[2], chunk}.seconds(at, rates[at.At("threads")], link)
		})
		f.call, f.wake, f.block = c[0], c[1], c[2]
		if math.Abs(f.call/before.call-1) < 1e-3 && math.Abs(f.block/before.block-1) < 1e-3 {
			break
		}
	}
	return f, rates
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
		return priceSave(p, hw.SaveGPU, at.At("chunk_tokens")/blockTokens*int64(g.KVHeads), g.BlockBytes, 0)
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
