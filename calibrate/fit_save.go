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

// scatterFit is FlashD2H's t = call + n block + bytes / min(link, scatter) +
// min(bytes, chunk) / max(link, scatter).
type scatterFit struct{ call, block, chunk float64 }

func (f scatterFit) seconds(at datum, scatter, link float64) float64 {
	bytes := moved(at)
	return f.call + f.block*blocks(at) + bytes/math.Min(link, scatter) + math.Min(bytes, f.chunk)/math.Max(link, scatter)
}

// fitScatter fits FlashD2H. Call and block are common to all threads; they and
// the threads' rates take turns, for each of some chunks.
func fitScatter(s *Samples, p *hw.Profile, from source, link float64) model {
	fit, held := s.of(probeSaveFlash).split(func(at datum) string {
		return byAxis("threads")(at) + " " + byAxis("block_bytes")(at)
	}, 1, nil)
	threads := fit.values("threads")
	var f scatterFit
	var rates map[int64]float64
	least := infinite
	for chunk := 0.25 * mib; chunk <= 32*mib; chunk *= math.Sqrt2 {
		g, r := scatterWith(chunk, fit, threads, link)
		cost := 0.0
		for _, at := range fit {
			cost += math.Pow(math.Log(g.seconds(at, r[at.At("threads")], link)/at.seconds), 2)
		}
		if cost < least {
			f, rates, least = g, r, cost
		}
	}
	p.Save.FlashCall = from.figure(f.call*1e6, "us", "FlashD2H: one copy into staging, and waking the threads")
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

// scatterWith fits all but the chunk.
func scatterWith(chunk float64, fit data, threads []int64, link float64) (scatterFit, map[int64]float64) {
	f, rates := scatterFit{20e-6, 1e-8, chunk}, map[int64]float64{}
	for range 12 {
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
		c := refine(fit, []float64{f.call, f.block}, []bound{callBound, blockBound}, func(c []float64, at datum) float64 {
			return scatterFit{c[0], c[1], chunk}.seconds(at, rates[at.At("threads")], link)
		})
		f.call, f.block = c[0], c[1]
		if math.Abs(f.call/before.call-1) < 1e-3 && math.Abs(f.block/before.block-1) < 1e-3 {
			break
		}
	}
	return f, rates
}

// fitContention finds the share of speed that compute loses while the GPU
// scatter kernel runs: t = alone / (1 - share).
func fitContention(s *Samples, p *hw.Profile, from source) model {
	alone := map[int64]float64{}
	for _, at := range s.of(probeBesideNone) {
		alone[at.At("tokens")] = at.seconds
	}
	fit, held := s.of(probeBesideSave).split(together, 1, nil)
	var shares []float64
	for _, at := range fit {
		shares = append(shares, 1-alone[at.At("tokens")]/at.seconds)
	}
	share := math.Min(math.Max(medianOf(shares).Value, 0.001), 0.99)
	p.Save.Contention = from.figure(share, "share", "a layer's linears and prefill attention while the scatter kernel saves without pause, against alone")
	return model{name: "save.contention", fit: fit, held: held,
		draw: picture{x: func(at datum) float64 { return float64(at.At("tokens")) }, xLabel: "tokens a layer computes"},
		price: func(p *hw.Profile, at datum) float64 {
			return alone[at.At("tokens")] / (1 - p.Save.Contention.SI())
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
			notes = append(notes, fmt.Sprintf("a layer's linears and prefill attention beside %s: %+.1f %% time (median of %d sizes)", beside.what, 100*medianOf(shares).Value, len(shares)))
		}
	}
	return notes
}
