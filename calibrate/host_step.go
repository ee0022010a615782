package calibrate

import (
	"github.com/sparseserve/sparseserve/hw"
	"math"
	"slices"
)

// hostStep is the host's time per step, without layers.
type hostStep struct{}

const probeLive = "live.step"

func (hostStep) probes() []Probe {
	return []Probe{{Name: probeLive, serve: serving(denseCase),
		Means: "a decode step of the live loop, dense, KV in HBM: what of it GPU events do not see",
		Axes:  []string{"layers", "requests"}, shaped: true}}
}

func (hostStep) points(p *planner) {
	for _, requests := range pick(p, []int64{1, 4, 16}, []int64{1, 16}) {
		p.add(stageHostStep, point(probeLive, shapes[0], p.layers(), requests))
	}
}

// fit finds the host's time per step in the live loop:
//
//	t = step + requests request
//
// Samples without the live loop yield the minimum of any loop: one launch and one synchronisation.
func (hostStep) fit(s *Samples, p *hw.Profile, from source) []model {
	plain := s.of(probeLive)
	if len(plain) == 0 {
		if sync := s.of(probeSync); len(sync) > 0 {
			p.Host.Step = from.us(sync[0].seconds,
				"submitting one kernel and synchronising, the least that a loop pays between two steps' "+
					"kernels")
		}
		return nil
	}
	// A shallow model shows less of the fixed cost of a step: part of it is counted as overhead
	// between its layers' kernels.
	deepest := slices.Max(plain.values("layers"))
	plain = plain.where(func(at observation) bool { return at.At("layers") == deepest })
	c := linear(plain, one, requests)
	p.Host.Step = from.figure(math.Max(c[0], callBound.low)*1e6, "us",
		"a decode step of the live loop, dense, KV in HBM: what GPU events do not see of it")
	p.Host.Request = perBlock(c[1], from, "the same, by requests")
	return nil
}

func requests(at observation) float64 { return float64(at.At("requests")) }
