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
// The second thread saves as the live loop's does, or loads; what a copy waits
// then is what a save waits while the first thread loads.
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

// fitDown finds how much of a save in progress a small copy to the host waits
// out. Each meets a save from its beginning on:
//
//	t = alone + share save
func fitDown(s *Samples, p *hw.Profile, from source) []model {
	p.Host.DownWait = hw.Figure{}
	alone := map[int64]float64{}
	for _, at := range s.of(probeDownNone) {
		alone[at.At("blocks")] = at.seconds
	}
	all := s.of(probeDownSave).where(func(at datum) bool { return alone[at.At("blocks")] > 0 })
	if len(all) == 0 {
		return nil
	}
	save := func(p *hw.Profile, at datum) float64 {
		return priceSave(p, hw.SaveMemcpy, at.At("blocks"), 16*kib, basePool, 0)
	}
	fit, held := all.split(together, 2, nil)
	var shares []float64
	for _, at := range fit {
		shares = append(shares, (at.seconds-alone[at.At("blocks")])/save(p, at))
	}
	if share := math.Min(medianOf(shares).Value, 0.99); share > 0 {
		p.Host.DownWait = from.figure(share, "share", "of a save with a memcpy a block, which a small copy to the host waits out")
	}
	return []model{{name: "host.down_wait", fit: fit, held: held, draw: picture{x: blocks, xLabel: "blocks saved at a time"},
		price: func(p *hw.Profile, at datum) float64 {
			t := alone[at.At("blocks")]
			if p.Host.DownWait.Set() {
				t += p.Host.DownWait.SI() * save(p, at)
			}
			return t
		}}}
}
