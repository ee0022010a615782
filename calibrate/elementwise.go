package calibrate

import (
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
)

// elementwise is what one layer has except matrices and attention.
type elementwise struct{}

const probePointwise = "pointwise"

func (elementwise) probes() []Probe {
	return []Probe{{Name: probePointwise, setup: (*gpuRun).setupPointwise,
		Means: "what one layer has except linears and attention: two norms with their residual sums, " +
			"rope with the write of K and V to their blocks, " +
			"silu(gate) up; " + gpuTime,
		Axes: []string{"tokens"}, shaped: true, needed: true}}
}

func (elementwise) points(p *planner) {
	for _, shape := range shapes {
		for _, n := range pick(p, []int64{1, 8, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384},
			[]int64{1, 256, 2048, 8192}) {
			p.add(stageElementwise, point(probePointwise, shape, n))
		}
	}
}

// fit fits t = launch + bytes/rate over all shapes, which the profile has as two
// rows of one shape: a token's time and that of the most tokens.
func (elementwise) fit(s *Samples, p *hw.Profile, from source) []model {
	const what = "two norms, rope with the write of K and V, activation: launch + bytes/rate"
	all := s.of(probePointwise)
	bytes := func(at observation) float64 { return tokens(at) * hw.PointwiseBytes(at.model) }
	fit, held := all.split(func(at observation) string { return at.Shape }, 3, isMost(all))
	c := fitBytes(fit, bytes, p.GPU.HBMBandwidth.SI())
	first := all[0].model
	ends := all.values("tokens")
	p.Pointwise = nil
	for _, n := range []int64{1, ends[len(ends)-1]} {
		t := c[0] + float64(n)*hw.PointwiseBytes(first)/c[1]
		p.Pointwise = append(p.Pointwise,
			hw.TokenRow{Shape: all[0].Shape, Tokens: int(n), Figure: from.figure(t*1e3, "ms", what)})
	}
	return []model{{name: "pointwise", fit: fit, held: held,
		draw: picture{x: bytes, xLabel: "bytes read and written", rate: bytes},
		price: func(p *hw.Profile, at observation) float64 {
			return hw.Seconds(p.Costs(at.model).Elementwise, sim.Work{Tokens: int(at.At("tokens"))})
		}}}
}

// isMost reports whether a point is of the most tokens.
func isMost(all data) func(observation) bool {
	n := all.values("tokens")
	return func(at observation) bool { return at.At("tokens") == n[len(n)-1] }
}

func tokens(at observation) float64 { return float64(at.At("tokens")) }
