package calibrate

import (
	"fmt"
	"math"

	"sparseserve/hw"
)

// fitScatter fits FlashD2H, t = call + B/min(link, rate(threads)): the call is common to
// all numbers of threads, and takes turns with their rates.
func fitScatter(s *Samples, p *hw.Profile, from source, link float64) model {
	all := s.of(probeSaveFlash)
	fit, held := all.split(func(at datum) string { return byAxis("threads")(at) + " " + byAxis("block_bytes")(at) }, 1, nil)
	threads := fit.values("threads")
	call, rates := 20e-6, make([]float64, len(threads))
	for range 12 {
		for i, n := range threads {
			of := fit.where(func(at datum) bool { return at.At("threads") == n })
			rates[i] = refine(of, []float64{math.Max(rates[i], link/2)}, []bound{{rateBound.low, link}}, func(r []float64, at datum) float64 { return call + moved(at)/r[0] })[0]
		}
		rate := map[int64]float64{}
		for i, n := range threads {
			rate[n] = rates[i]
		}
		before := call
		call = refine(fit, []float64{call}, []bound{callBound}, func(c []float64, at datum) float64 { return c[0] + moved(at)/rate[at.At("threads")] })[0]
		if math.Abs(call/before-1) < 1e-3 {
			break
		}
	}
	alike := make([]float64, len(threads))
	for i := range alike {
		alike[i] = 1
	}
	rates = rising(rates, alike) // more threads are never slower

	const what = "FlashD2H: "
	p.Save.FlashCall = from.figure(call*1e6, "us", what+"one copy into staging, and the threads' way to work and back")
	p.Save.Scatter = nil
	fewest := 0
	for i, n := range threads {
		p.Save.Scatter = append(p.Save.Scatter, hw.ScatterRow{Threads: int(n), Figure: from.figure(rates[i]*1e-9, "GB/s", what+"copy and the CPU's scatter beside it")})
		if rates[i] > rates[fewest]*1.02 {
			fewest = i
		}
	}
	p.Save.Threads = from.figure(float64(threads[fewest]), "threads", "the fewest beyond which saving gains no more than 2 %")
	return model{name: "save.scatter", fit: fit, held: held, draw: picture{x: moved, xLabel: "bytes saved", rate: moved},
		why: unlike(fit),
		price: func(p *hw.Profile, at datum) float64 {
			return priceSave(p, hw.SaveFlash, at.At("blocks"), at.At("block_bytes"), at.At("pool_mib"), at.At("threads"))
		}}
}

// unlike says how much longer the same bytes take as many threads in blocks of
// another size, where blocks are of 4 KiB and more and their size should not
// matter: the host's own noise, which lasts longer than a point.
func unlike(d data) string {
	worst, text := 1.0, ""
	for _, a := range d {
		for _, b := range d {
			if a.At("block_bytes") < 4*kib || b.At("block_bytes") < 4*kib || a.At("threads") != b.At("threads") || moved(a) != moved(b) {
				continue
			}
			if r := a.seconds / b.seconds; r > worst {
				worst = r
				text = fmt.Sprintf("the same bytes on as many threads take up to %.2f times as long at another point: %s and %s; the host's CPUs", r, a.Key(), b.Key())
			}
		}
	}
	return text
}
