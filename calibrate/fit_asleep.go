package calibrate

import (
	"sparseserve/hw"
	"sparseserve/sim/kv"
)

// fitAsleep finds what a layer's round trip takes longer where the threads that
// share the lookup have gone to sleep, as a layer that copies many blocks one by one
// took so long:
//
//	t = without + layers (loads + asleep min(1, lists/128))
//
// Servers whose layers load few blocks wait less than that and are held out.
func fitAsleep(s *Samples, p *hw.Profile, from source) []model {
	p.Host.Asleep = hw.Figure{}
	without := stepsWithoutLoads(s)
	lists := func(at datum) int { return int(at.At("requests")) * at.model.KVHeads }
	all := s.of(probeLiveCopies).where(func(at datum) bool { return without[liveSize(at)] > 0 })
	price := func(p *hw.Profile, at datum) float64 {
		layer := p.HostLoadsSeconds(at.At("loads"))
		if asleep(p, at) {
			layer += p.AsleepSeconds(lists(at))
		}
		return without[liveSize(at)] + float64(at.At("layers"))*layer
	}
	fit := all.where(func(at datum) bool { return asleep(p, at) })
	if len(fit) == 0 {
		return nil
	}
	unit := hw.Profile{Host: hw.Host{Asleep: from.figure(1, "s", "")}}
	t := weighted(fit, func(at datum) (rest, factor float64) {
		return at.seconds - price(p, at), float64(at.At("layers")) * unit.AsleepSeconds(lists(at))
	}, 0)
	p.Host.Asleep = perBlock(t, from, "what a decode step of the live loop takes longer for each layer, where the one before it copies so many blocks one by one that threads which share the lookup have gone to sleep")
	return []model{{name: "host.asleep", why: "the held-out server loads too few blocks for threads to sleep: it says how host.loads prices it, not what sleep costs", fit: fit, held: all.where(func(at datum) bool { return !asleep(p, at) }), price: price,
		draw: picture{x: func(at datum) float64 { return float64(at.At("loads")) }, xLabel: "blocks that a layer loads"}}}
}

// asleep says whether a layer's copies alone take longer than threads wait.
func asleep(p *hw.Profile, at datum) bool {
	t, err := p.LoadSeconds(hw.LoadMemcpy, at.At("loads"), at.model.Geometry(blockTokens).BlockBytes, gib)
	must(err)
	return t > kv.HelpersAwake.Seconds()
}
