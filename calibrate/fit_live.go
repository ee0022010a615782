package calibrate

import (
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/hw"
)

func requests(at datum) float64 { return float64(at.At("requests")) }

// fitStep takes the host's time of a step from the live loop itself:
//
//	t = step + requests request
//
// Samples without the live loop know the least that a loop pays, one launch and one
// synchronisation.
func fitStep(s *Samples, p *hw.Profile, from source) {
	plain := s.of(probeLive)
	if len(plain) == 0 {
		if sync := s.of(probeSync); len(sync) > 0 {
			p.Host.Step = from.figure(sync[0].seconds*1e6, "us", "submitting one kernel and synchronising, the least that a loop pays between two steps' kernels")
		}
		return
	}
	// Of what a step costs whatever its layers a shallow model sees less: gaps
	// between its layers' kernels count to it.
	deepest := slices.Max(plain.values("layers"))
	plain = plain.where(func(at datum) bool { return at.At("layers") == deepest })
	c := linear(plain, one, requests)
	p.Host.Step = from.figure(math.Max(c[0], callBound.low)*1e6, "us", "a decode step of the live loop, dense, KV in HBM: what GPU events do not see of it")
	p.Host.Request = perBlock(c[1], from, "the same, by requests")
}

// mostNamed are the blocks of a layer of which the host's time for each is taken: among
// thousands, which cores share, a block takes a third of what it takes in a run.
const mostNamed = 1000

// fitLoading takes what the host needs for each block that a layer loads, to find it a slot
// and to name both places, from the same servers with and without loads.
func fitLoading(s *Samples, p *hw.Profile, from source) {
	p.Host.Load = hw.Figure{}
	without := map[int64]float64{}
	for _, at := range s.of(probeLiveOffload) {
		without[at.At("requests")] = at.seconds
	}
	var longer data
	for _, at := range s.of(probeLiveLoads) {
		if t, ok := without[at.At("requests")]; ok && at.seconds > t && at.At("loads") < mostNamed {
			at.seconds -= t
			longer = append(longer, at)
		}
	}
	if len(longer) > 0 {
		each := shareOf(longer, func(at datum) float64 { return float64(at.At("layers") * at.At("loads")) })
		p.Host.Load = perBlock(each, from, "each block that a layer loads: what GPU events see as idle of a decode step of the live loop, over the same without loads")
	}
}
