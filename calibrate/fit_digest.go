package calibrate

import (
	"math"

	"sparseserve/hw"
)

// fitDigest fits the digests of blocks that a prompt has filled, t = launch +
// bytes/rate, as what they add to the kernel that has just written the blocks:
// of few blocks K is still in the L2.
func fitDigest(s *Samples, p *hw.Profile, from source) []model {
	p.Digest = hw.Digest{}
	all := s.beyond(probeDigest, probeRope)
	if len(all) < 4 {
		return nil
	}
	bytes := func(at datum) float64 { return tokens(at) * float64(at.model.LayerKVBytesPerToken()) / 2 }
	fewest := all.values("tokens")[0]
	fit, held := all.split(func(at datum) string { return at.Shape }, 2, func(at datum) bool { return at.At("tokens") == fewest })
	start, hbm := linear(fit, one, bytes), p.GPU.HBMBandwidth.SI()
	c := refine(fit, []float64{math.Max(start[0], 1e-6), 1 / math.Max(start[1], 1/hbm)}, []bound{callBound, {rateBound.low, hbm}}, func(c []float64, at datum) float64 {
		return c[0] + bytes(at)/c[1]
	})
	const what = "digests of a prompt's full blocks, behind the write of their K and V"
	p.Digest = hw.Digest{Launch: from.figure(c[0]*1e6, "us", what), Rate: from.figure(c[1]*1e-9, "GB/s", what+", bytes of K")}
	return []model{{name: "digest", fit: fit, held: held, draw: picture{x: bytes, xLabel: "bytes of K", rate: bytes},
		price: func(p *hw.Profile, at datum) float64 { return p.DigestSeconds(at.model, 1, at.At("tokens")) }}}
}
