package calibrate

import (
	"slices"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/sim"
)

// inPlaceTokens is the maximum number of tokens for which the kernels are measured between their
// linears. Some of their input is then still in the L2. For more tokens the time would be a small
// difference of long times.
const inPlaceTokens = 1024

// fitElementwise keeps the measured points of each shape; hw interpolates linearly between them. It
// uses the points between linears up to inPlaceTokens, then the kernels alone. Token counts that
// are no power of two are held out, because their linears may use other kernels.
func fitElementwise(s *Samples, p *hw.Profile, from source) (models []model) {
	alone, inPlace := s.of(probePointwise), s.of(probeInPlace)
	p.Pointwise = nil
	for _, shape := range alone.shapes() {
		points := inPlace.ofShape(shape)
		most := int64(0)
		if sizes := points.values("tokens"); len(sizes) > 0 {
			most = sizes[len(sizes)-1]
		}
		points = append(points, alone.ofShape(shape).where(func(at observation) bool {
			return at.At("tokens") > most
		})...)
		points, others := points.part(func(at observation) bool { return powerOfTwo(at.At("tokens")) })
		m := splitCurve(points)
		m.name, m.held = "pointwise."+shape, append(m.held, others...)
		const what = "two norms, rope with the write of K and V, activation"
		kept := shapeRows(neverFalling(m.fit), shape, from, what)
		p.Pointwise = append(p.Pointwise, shapeRows(neverFalling(points), shape, from, what)...)
		m.price = func(p *hw.Profile, at observation) float64 {
			without := *p
			without.Pointwise = kept
			return cost.Seconds(cost.Of(&without, at.model).Elementwise,
				sim.Work{Tokens: int(at.At("tokens"))})
		}
		models = append(models, m)
	}
	return models
}

// neverFalling returns sorted points with the minimum change that makes their times rise:
// differences of two long times fall by measurement noise.
func neverFalling(d data) data {
	seconds, weights := make([]float64, len(d)), make([]float64, len(d))
	for i, at := range d {
		seconds[i], weights[i] = at.seconds, 1
	}
	out := slices.Clone(d)
	for i, t := range rising(seconds, weights) {
		out[i].seconds = t
	}
	return out
}

func tokens(at observation) float64 { return float64(at.At("tokens")) }
