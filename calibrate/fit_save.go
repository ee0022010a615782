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
	p.Save.GPUBlock = perBlock(k, from)
	p.Save.GPURate = from.figure(k.rate*1e-9, "GB/s", "one scatter kernel, blocks anywhere in a pinned pool of 1 GiB")
	models = append(models, model{name: "save.gpu", fit: fit, held: held, price: price(hw.SaveGPU), draw: draw})

	models = append(models, fitContention(s, p, from), fitScatter(s, p, from, link))
	return models
}

// fitScatter fits FlashD2H: t = call + bytes / min(link, scatter(threads)). The
// call is common to all threads; call and rates take turns.
func fitScatter(s *Samples, p *hw.Profile, from source, link float64) model {
	fit, held := s.of(probeSaveFlash).split(func(at datum) string {
		return byAxis("threads")(at) + " " + byAxis("block_bytes")(at)
	}, 1, nil)
	threads := fit.values("threads")
	call, rates := 10e-6, map[int64]float64{}
	seconds := func(call, rate, bytes float64) float64 { return call + bytes/math.Min(link, rate) }
	for range 20 {
		for _, n := range threads {
			mine := fit.where(func(at datum) bool { return at.At("threads") == n })
			start := rates[n]
			if start == 0 {
				start = link / 2
			}
			rates[n] = refine(mine, []float64{start}, []bound{{rateBound.low, link}}, func(r []float64, at datum) float64 {
				return seconds(call, r[0], moved(at))
			})[0]
		}
		before := call
		call = refine(fit, []float64{call}, []bound{callBound}, func(c []float64, at datum) float64 {
			return seconds(c[0], rates[at.At("threads")], moved(at))
		})[0]
		if math.Abs(call/before-1) < 1e-4 {
			break
		}
	}
	p.Save.FlashCall = from.figure(call*1e6, "us", "FlashD2H: one copy into staging, and waking the threads")
	p.Save.Scatter = nil
	best := threads[0]
	for _, n := range threads {
		p.Save.Scatter = append(p.Save.Scatter, hw.ScatterRow{Threads: int(n), Figure: from.figure(rates[n]*1e-9, "GB/s", "FlashD2H end to end, at most the link's own rate")})
		if rates[n] > rates[best]*1.02 {
			best = n
		}
	}
	p.Save.Threads = from.figure(float64(best), "threads", "the fewest beyond which the scatter gains no more than 2 %")
	return model{name: "save.scatter", fit: fit, held: held, draw: picture{x: moved, xLabel: "bytes saved", rate: moved},
		price: func(p *hw.Profile, at datum) float64 {
			return priceSave(p, hw.SaveFlash, at.At("blocks"), at.At("block_bytes"), at.At("threads"))
		}}
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
