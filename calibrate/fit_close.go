package calibrate

import (
	"math"

	"github.com/sparseserve/sparseserve/hw"
)

// fitBlockClose fits what blocks cost that a prompt has filled, their metadata and their
// copy to the save buffer, t = launch + bytes/rate, as what these kernels add to the one
// that has just written the blocks: of few blocks K is still in the L2.
func fitBlockClose(s *Samples, p *hw.Profile, from source) []model {
	p.BlockClose = hw.BlockClose{}
	all := s.beyond(probeClose, probeRope)
	if len(all) < 4 {
		return nil
	}
	bytes := func(at datum) float64 { return tokens(at) * float64(at.model.LayerKVBytesPerToken()) }
	fewest := all.values("tokens")[0]
	fit, held := all.split(func(at datum) string { return at.Shape }, 2, func(at datum) bool { return at.At("tokens") == fewest })
	start, hbm := linear(fit, one, bytes), p.GPU.HBMBandwidth.SI()
	c := refine(fit, []float64{math.Max(start[0], 1e-6), 1 / math.Max(start[1], 1/hbm)}, []bound{callBound, {rateBound.low, hbm}}, func(c []float64, at datum) float64 {
		return c[0] + bytes(at)/c[1]
	})
	const what = "metadata of a prompt's full blocks and their copy to the save buffer, behind the write of their K and V"
	p.BlockClose = hw.BlockClose{Launch: from.figure(c[0]*1e6, "us", what), Rate: from.figure(c[1]*1e-9, "GB/s", what+", bytes of K and V")}
	return []model{{name: "block_close", fit: fit, held: held, draw: picture{x: bytes, xLabel: "bytes of K and V", rate: bytes},
		price: func(p *hw.Profile, at datum) float64 { return p.BlockCloseSeconds(at.model, 1, at.At("tokens")) }}}
}

// beyond is what a probe of some tokens takes longer than another of as many of the
// same shape.
func (s *Samples) beyond(probe, without string) (d data) {
	less := map[string]map[int64]datum{}
	for _, at := range s.of(without) {
		if less[at.Shape] == nil {
			less[at.Shape] = map[int64]datum{}
		}
		less[at.Shape][at.At("tokens")] = at
	}
	for _, at := range s.of(probe) {
		if without, ok := less[at.Shape][at.At("tokens")]; ok && at.seconds > without.seconds {
			at.seconds -= without.seconds
			at.within = lessOpen(at.within, without.within)
			d = append(d, at)
		}
	}
	return d
}
