package calibrate

import "sparseserve/hw"

// fitQueued takes what a gather costs behind a layer's weights, where its launch has
// no one to wait for: t = queued + n block + bytes/rate with fitLoad's block and
// rate.
func fitQueued(s *Samples, p *hw.Profile, from source) {
	l := &p.Load
	l.FlashQueued = hw.Figure{}
	loads := s.behind(probeBehindLoad, probeBehindLists)
	if len(loads) == 0 {
		return
	}
	var launch []float64
	for _, at := range loads {
		alone := priceLoad(p, hw.LoadFlash, at.At("blocks"), queuedBlock, basePool)
		launch = append(launch, at.seconds-(alone-l.FlashLaunch.SI()))
	}
	queued := medianOf(launch).Value
	if queued < 0 || queued > l.FlashLaunch.SI() {
		return // the linears' noise: it stays what it is alone
	}
	l.FlashQueued = perBlock(queued, from, "one gather kernel of few blocks, behind the layer's weights and lists")
}

// behind is what a probe takes longer than another of as many requests.
func (s *Samples) behind(probe, without string) (d data) {
	less := map[int64]float64{}
	for _, at := range s.of(without) {
		less[at.At("requests")] = at.seconds
	}
	for _, at := range s.of(probe) {
		if t, ok := less[at.At("requests")]; ok && at.seconds > t {
			at.seconds -= t
			d = append(d, at)
		}
	}
	return d
}
