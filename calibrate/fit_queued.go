package calibrate

import (
	"math"

	"sparseserve/hw"
)

// fitQueued takes what a gather costs behind a layer's weights, where its launch has
// no one to wait for: t = queued + n block + bytes/rate with fitLoad's block and
// rate, and idle for one that finds nothing to load.
func fitQueued(s *Samples, p *hw.Profile, from source) []model {
	l := &p.Load
	l.FlashQueued, l.FlashIdle = hw.Figure{}, hw.Figure{}
	none, loads := s.behind(probeBehindGather, probeBehindLists), s.behind(probeBehindLoad, probeBehindLists)
	if len(none) == 0 || len(loads) == 0 {
		return nil
	}
	var idle, launch []float64
	for _, at := range none {
		idle = append(idle, at.seconds)
	}
	for _, at := range loads {
		alone := priceLoad(p, hw.LoadFlash, at.At("blocks"), queuedBlock, basePool)
		launch = append(launch, at.seconds-(alone-l.FlashLaunch.SI()))
	}
	nothing, queued := medianOf(idle).Value, medianOf(launch).Value
	if queued < nothing || queued > l.FlashLaunch.SI() {
		return nil // the linears' noise: it stays what it is alone
	}
	l.FlashQueued = perBlock(queued, from, "one gather kernel of few blocks, behind the layer's weights and lists")
	l.FlashIdle = perBlock(nothing, from, "the same, nothing to load")
	fit, held := loads.split(together, 2, nil)
	moved := func(at datum) float64 { return float64(at.At("blocks") * queuedBlock) }
	return []model{{name: "load.flash_queued", fit: fit, held: held, draw: picture{x: moved, xLabel: "bytes loaded", rate: moved},
		price: func(p *hw.Profile, at datum) float64 {
			return p.QueuedLoadSeconds(at.At("blocks"), queuedBlock, basePool*mib)
		}}}
}

// fitRing fits the copy of a prompt's full blocks to the save buffer, t = launch +
// bytes/rate, as what it adds to the kernels that have just written and digested
// them.
func fitRing(s *Samples, p *hw.Profile, from source) []model {
	p.Save.RingLaunch, p.Save.RingRate = hw.Figure{}, hw.Figure{}
	all := s.beyond(probeRing, probeDigest)
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
	const what = "the copy of a prompt's full blocks to the save buffer, behind their digests"
	p.Save.RingLaunch, p.Save.RingRate = from.figure(c[0]*1e6, "us", what), from.figure(c[1]*1e-9, "GB/s", what+", bytes of K and V")
	return []model{{name: "save.ring", fit: fit, held: held, draw: picture{x: bytes, xLabel: "bytes of K and V", rate: bytes},
		price: func(p *hw.Profile, at datum) float64 { return p.RingSeconds(1, int64(bytes(at))) }}}
}

// beyond is what a probe of some tokens takes longer than another of as many of the
// same shape.
func (s *Samples) beyond(probe, without string) (d data) {
	less := map[string]map[int64]float64{}
	for _, at := range s.of(without) {
		if less[at.Shape] == nil {
			less[at.Shape] = map[int64]float64{}
		}
		less[at.Shape][at.At("tokens")] = at.seconds
	}
	for _, at := range s.of(probe) {
		if t, ok := less[at.Shape][at.At("tokens")]; ok && at.seconds > t {
			at.seconds -= t
			d = append(d, at)
		}
	}
	return d
}
