package calibrate

import "sparseserve/hw"

// fitBoth finds what waits for another thread that copies blocks with a memcpy each
// without pause: a block that is loaded so, beside saves, one that is saved so, beside
// loads, and a layer's round trip, beside saves.
//
//	t = alone + blocks wait        t = alone + wait
//
// The middle size is held out. Samples from before there was a probe of these have what
// calls beside loads wait (fitWaits) for saves, and nothing of the others.
func fitBoth(s *Samples, p *hw.Profile, from source) (models []model) {
	p.Host.LoadWait, p.Host.TurnWait = hw.Figure{}, hw.Figure{}
	for _, w := range []struct {
		name, probe, what string
		size, xLabel      string
		waits             func(datum) float64 // how often
		figure            func(*hw.Profile) *hw.Figure
	}{
		{"host.load_wait", probeBothLoad, "a block loaded with a memcpy beside a thread that saves so, over the same alone", "blocks", "blocks", blocks,
			func(p *hw.Profile) *hw.Figure { return &p.Host.LoadWait }},
		{"host.copy_wait", probeBothSave, "a block saved with a memcpy beside a thread that loads so, over the same alone", "blocks", "blocks", blocks,
			func(p *hw.Profile) *hw.Figure { return &p.Host.CopyWait }},
		{"host.turn_wait", probeBothTurn, "a layer's lists on their way down, and the wait for them, beside a thread that saves with a memcpy a block, over the same alone", "bytes", "bytes of lists", one,
			func(p *hw.Profile) *hw.Figure { return &p.Host.TurnWait }},
	} {
		all := s.of(w.probe)
		alone := map[int64]float64{}
		for _, at := range all.where(func(at datum) bool { return at.At("beside") == 0 }) {
			alone[at.At(w.size)] = at.seconds
		}
		beside := all.where(func(at datum) bool { return at.At("beside") > 0 && alone[at.At(w.size)] > 0 })
		sizes := beside.values(w.size)
		fit, held := beside.split(together, 2, func(at datum) bool { n := at.At(w.size); return n == sizes[0] || n == sizes[len(sizes)-1] })
		if len(fit) == 0 {
			continue
		}
		// Where none is found a nanosecond says so: without a figure a call's would stand in.
		wait := weighted(fit, func(at datum) (rest, factor float64) { return at.seconds - alone[at.At(w.size)], w.waits(at) }, 1e-9)
		*w.figure(p) = from.figure(wait*1e6, "us", w.what)
		models = append(models, model{name: w.name, fit: fit, held: held, draw: picture{x: func(at datum) float64 { return float64(at.At(w.size)) }, xLabel: w.xLabel},
			price: func(p *hw.Profile, at datum) float64 {
				return alone[at.At(w.size)] + w.waits(at)*w.figure(p).SI()
			}})
	}
	return models
}
