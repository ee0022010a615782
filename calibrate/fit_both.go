package calibrate

import (
	"math"

	"sparseserve/hw"
)

// fitBoth finds what a block that is loaded with a memcpy of its own waits while
// another thread saves so, and one that is saved while another loads:
//
//	t = alone + blocks wait
//
// The middle size is held out. Samples from before there was a probe of it have what
// calls beside loads wait (fitWaits) for saves, and nothing of loads.
func fitBoth(s *Samples, p *hw.Profile, from source) (models []model) {
	p.Host.LoadWait = hw.Figure{}
	for _, w := range []struct {
		name, probe, what string
		figure            func(*hw.Profile) *hw.Figure
	}{
		{"host.load_wait", probeBothLoad, "a block loaded with a memcpy beside a thread that saves so, over the same alone",
			func(p *hw.Profile) *hw.Figure { return &p.Host.LoadWait }},
		{"host.copy_wait", probeBothSave, "a block saved with a memcpy beside a thread that loads so, over the same alone",
			func(p *hw.Profile) *hw.Figure { return &p.Host.CopyWait }},
	} {
		all := s.of(w.probe)
		alone := map[int64]float64{}
		for _, at := range all.where(func(at datum) bool { return at.At("beside") == 0 }) {
			alone[at.At("blocks")] = at.seconds
		}
		fit, held := all.where(func(at datum) bool { return at.At("beside") > 0 && alone[at.At("blocks")] > 0 }).split(together, 2, nil)
		if len(fit) == 0 {
			continue
		}
		*w.figure(p) = hw.Figure{}
		wait := weighted(fit, func(at datum) (rest, factor float64) { return at.seconds - alone[at.At("blocks")], blocks(at) }, 0)
		if wait > 0 {
			*w.figure(p) = from.figure(wait*1e6, "us", w.what)
		}
		models = append(models, model{name: w.name, fit: fit, held: held, draw: picture{x: blocks, xLabel: "blocks"},
			price: func(p *hw.Profile, at datum) float64 {
				t := alone[at.At("blocks")]
				if f := w.figure(p); f.Set() {
					t += blocks(at) * f.SI()
				}
				return math.Max(t, callBound.low)
			}})
	}
	return models
}
