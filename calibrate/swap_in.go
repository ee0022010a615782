package calibrate

import (
	"math"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
)

// latentFP8 and latent16 are the bytes per row of DeepSeek's latent: FP8 with scales, and 16 bits.
const latentFP8, latent16 = 656, 1152

// swappedBytes are the bytes of the rows that a call loads.
func swappedBytes(at observation) float64 {
	return float64(at.At("requests") * at.At("misses") * at.At("row_bytes"))
}

// fitSwapIn finds t = launch + waves * slots * scan + max(bytes/rate, bytes of a
// request/request_rate), with a rate of at most the link's. It needs the link's rate and the number
// of SMs, each of which runs one CTA at a time.
func fitSwapIn(s *Samples, p *hw.Profile, from source) []model {
	p.Load.Swap = hw.SwapCost{}
	all, ctas := s.of(probeSwap), s.sms()
	if len(all) == 0 || ctas == 0 {
		return nil
	}
	link := loadLink(p)
	fit, held := all.split(byAxis("requests"), 2, nil)
	walks := func(at observation) float64 {
		return math.Ceil(float64(at.At("requests"))/ctas) * float64(at.At("slots")) / 1024
	}
	c := refine(fit, []float64{4e-6, 1e-6, 0.8 * link, link / 4},
		[]bound{callBound, blockBound, {rateBound.low, link * 1.2}, {rateBound.low, link * 1.2}},
		func(c []float64, at observation) float64 {
			bytes := swappedBytes(at)
			t := c[0] + walks(at)*c[1] + math.Max(bytes/c[2], bytes/float64(at.At("requests"))/c[3])
			return math.Max(t, bytes/link)
		})
	const what = "one kernel for hot buffers: "
	p.Load.Swap = hw.SwapCost{
		Launch:      from.us(c[0], what+"launch, lookup of 2,048 tokens and save of the newest"),
		Scan:        from.us(c[1], what+"the walk of 1,024 slots"),
		Rate:        from.gbps(c[2], what+"rows anywhere in a pinned pool"),
		RequestRate: from.gbps(c[3], what+"rows of one request, which one CTA loads"),
	}
	return []model{{name: "load.swap", fit: fit, held: held,
		price: func(p *hw.Profile, at observation) float64 {
			t, err := cost.SwapSeconds(p, int(at.At("requests")), int(at.At("slots")), at.At("misses"),
				at.At("row_bytes"))
			must(err)
			return t
		}}}
}
