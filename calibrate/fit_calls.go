package calibrate

import (
	"math"

	"sparseserve/hw"
)

// fitWaits finds what a call of the driver takes longer while another thread
// copies blocks one by one: calls of two threads queue for the driver's lock.
//
//	t = alone + (launches + copies) wait
//
// The second thread saves as the live loop's does. In samples from before saves were
// measured beside loads (fitBoth) it loads too, and what a copy waits then is what a
// save waits.
func fitWaits(s *Samples, p *hw.Profile, from source) []model {
	alone := map[string]float64{}
	for _, at := range s.of(probeCallsNone) {
		alone[at.Sizes()] = at.seconds
	}
	made := func(at datum) float64 { return float64(at.At("launches") + at.At("copies")) }
	var models []model
	for _, w := range []struct {
		name, probe, what string
		figure            func(*hw.Profile) *hw.Figure
	}{
		{"host.call_wait", probeCallsSave, "a launch or small copy beside a thread that saves with a memcpy a block, over the same alone",
			func(p *hw.Profile) *hw.Figure { return &p.Host.CallWait }},
		{"host.copy_wait", probeCallsLoad, "a launch or small copy beside a thread that loads with a memcpy a block, over the same alone",
			func(p *hw.Profile) *hw.Figure { return &p.Host.CopyWait }},
	} {
		*w.figure(p) = hw.Figure{}
		if w.probe == probeCallsLoad && len(s.of(probeBothSave)) > 0 {
			continue // fitBoth has it from saves
		}
		all := s.of(w.probe).where(func(at datum) bool { return alone[at.Sizes()] > 0 })
		if len(all) == 0 {
			continue
		}
		fit, held := all.split(together, 2, nil)
		var waits []float64
		for _, at := range fit {
			waits = append(waits, (at.seconds-alone[at.Sizes()])/made(at))
		}
		if wait := medianOf(waits).Value; wait > 0 {
			*w.figure(p) = from.figure(wait*1e6, "us", w.what)
		}
		models = append(models, model{name: w.name, fit: fit, held: held, draw: picture{x: made, xLabel: "calls"},
			price: func(p *hw.Profile, at datum) float64 {
				t := alone[at.Sizes()]
				if f := w.figure(p); f.Set() {
					t += made(at) * f.SI()
				}
				return math.Max(t, callBound.low)
			}})
	}
	return models
}
