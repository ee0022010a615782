package calibrate

import (
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/sim"
)

// fitSharedDecode finds the rate at which the L2 delivers bytes; the other figures are those for
// separate contexts.
func fitSharedDecode(s *Samples, p *hw.Profile, from source) []model {
	p.DenseDecode.L2Rate = hw.Figure{}
	points := s.of(probeShared)
	if len(points) == 0 {
		return nil
	}
	fit, held := points.split(byShape, 3, nil)
	price := func(p *hw.Profile, at observation) float64 {
		return cost.Seconds(cost.Of(p, at.model).DenseDecode, sim.Work{
			DecodeTokens: kvTokens(at, "context_tokens"), Decodes: int(at.At("batch")),
			RereadTokens: (at.At("batch") - 1) * at.At("shared_tokens")})
	}
	rate := p.DenseDecode.Rate.SI()
	fitPrices(fit, p, price, free{&p.DenseDecode.L2Rate, 2 * rate, bound{rate, mostL2 * rate},
		from.gbps, "paged dense decode kernel, all bytes of contexts of which 7/8 are shared"})
	return []model{{name: "dense_decode.l2_rate", fit: fit, held: held, price: price}}
}

// mostL2 bounds the L2's rate relative to HBM's.
const mostL2 = 20

func (g *gpuRun) setupShared(p Point) *work {
	b := g.decode(g.model(p.Shape), decodeSpec{
		contexts: equalTo(p.At("batch"), p.At("context_tokens")),
		shared:   p.At("shared_tokens") / blockTokens,
	})
	return g.timed(b, &b.args)
}
