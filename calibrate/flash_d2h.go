package calibrate

import (
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
)

// mostScattered is the largest save in the fit of FlashD2H, in bytes: a layer of 4,096 tokens with
// 32 KV heads. Larger saves exceed the CPU's caches, and one thread scatters them more slowly.
const mostScattered = 64 * mib

// fitFlashD2H fits saves by one copy into staging, which CPU threads scatter (hw: saver). All
// thread counts share the call and are fitted together:
//
//	t = call + B/min(link, rate(threads))
func fitFlashD2H(s *Samples, p *hw.Profile, from source) []model {
	link := saveLink(p)
	all := s.of(probeSaveFlash).where(func(at observation) bool { return moved(at) <= mostScattered })
	fit, held := all.split(func(at observation) string {
		return byAxis("threads")(at) + " " +
			byAxis("block_bytes")(at)
	}, 1, nil)
	threads := fit.values("threads")
	terms := []func(observation) float64{one}
	for _, n := range threads {
		terms = append(terms, func(at observation) float64 {
			if at.At("threads") != n {
				return 0
			}
			return moved(at)
		})
	}
	c := linear(fit, terms...)
	rates, alike := make([]float64, len(threads)), make([]float64, len(threads))
	for i := range threads {
		rates[i], alike[i] = min(link, 1/max(c[1+i], 1/link)), 1
	}
	rates = rising(rates, alike) // more threads are never slower

	const what = "FlashD2H: "
	p.Save.FlashCall = from.us(max(c[0], callBound.low),
		what+"one copy into staging, and the threads' way to work and back")
	p.Save.Scatter = nil
	for i, n := range threads {
		p.Save.Scatter = append(p.Save.Scatter,
			hw.ScatterRow{Threads: int(n),
				Figure: from.gbps(rates[i], what+"the CPU's scatter")})
	}
	return []model{{name: "save.scatter", fit: fit, held: held,
		price: func(p *hw.Profile, at observation) float64 {
			return transferPrice(p, cost.SaveFlash, at)
		}}}
}
