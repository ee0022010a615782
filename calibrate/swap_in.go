package calibrate

import (
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
)

// latentFP8 and latent16 are the bytes per row of DeepSeek's latent: FP8 with scales, and 16 bits.
const latentFP8, latent16 = 656, 1152

// fitSwapIn finds t = launch + waves * slots * scan + max(bytes/rate, bytes of a
// request/request_rate), with a rate of at most the link's. It needs the link's rate and the number
// of SMs, each of which runs one CTA at a time.
func fitSwapIn(s *Samples, p *hw.Profile, from source) []model {
	swap := &p.Load.Swap
	*swap = hw.SwapCost{}
	all := s.of(probeSwap)
	if len(all) == 0 || s.sms() == 0 {
		return nil
	}
	link := loadLink(p)
	rates := bound{rateBound.low, link * 1.2}
	fit, held := all.split(byAxis("requests"), 2, nil)
	price := func(p *hw.Profile, at observation) float64 {
		t, err := cost.SwapSeconds(p, int(at.At("requests")), int(at.At("slots")), at.At("misses"),
			at.At("row_bytes"))
		must(err)
		return t
	}
	const what = "one kernel for hot buffers: "
	fitPrices(fit, p, price,
		free{&swap.Launch, 4e-6, callBound, from.us,
			what + "launch, lookup of 2,048 tokens and save of the newest"},
		free{&swap.Scan, 1e-6, blockBound, from.us, what + "the walk of 1,024 slots"},
		free{&swap.Rate, 0.8 * link, rates, from.gbps, what + "rows anywhere in a pinned pool"},
		free{&swap.RequestRate, link / 4, rates, from.gbps,
			what + "rows of one request, which one CTA loads"})
	return []model{{name: "load.swap", fit: fit, held: held, price: price}}
}
