package cost

import (
	"math"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
)

// elementwise is the cost of a layer's two norms, rope, activation and two residual sums. All are
// bound by bytes: of HBM, or of L2 while it holds the output of the layer's linears.
//
//	t(n) = launch + scale * (measured(n) - launch)
//
// launch is the first row's time. scale is the ratio of the model's bytes per token to the measured
// shape's.
type elementwise struct {
	measured curve // tokens, seconds
	scale    float64
}

// newElementwise selects rows by bytes per token.
func newElementwise(p *hw.Profile, m *llm.Model) elementwise {
	return newElementwiseOf(p, m.PointwiseBytes())
}

func newElementwiseOf(p *hw.Profile, bytes float64) elementwise {
	best, distance := "", math.Inf(1)
	for _, r := range p.Pointwise {
		s := p.ShapeOf(r.Shape).Model()
		if d := math.Abs(math.Log(bytes / s.PointwiseBytes())); d < distance {
			best, distance = r.Shape, d
		}
	}
	s := p.ShapeOf(best).Model()
	return elementwise{
		measured: tokenCurve(p.Pointwise, best),
		scale:    bytes / s.PointwiseBytes(),
	}
}

// pointwiseBytes is PointwiseBytes for a layer of any class. Rope covers the rotated part of
// latents, whose ranks have their own norms. Activation covers the columns of all FFNs that a token
// passes. Routing writes a copy of the token per expert and reads the results.
func pointwiseBytes(m *llm.Model, c layerClass) float64 {
	around := 2*2*m.Hidden + 2*3*m.Hidden
	if m.IsLatent() {
		around += 2*(m.QHeads+1)*m.RopeDim + 2*(m.QRank+m.KVRank)
	} else {
		around += 2 * (m.QHeads + m.KVHeads) * m.HeadDim
	}
	if !c.routed {
		return 2 * float64(around+3*m.FFN)
	}
	copies := 2 * m.ExpertsPerToken * m.Hidden / m.Spread()
	return 2 * float64(around+3*m.ExpertColumns()+copies+2*m.Hidden)
}

// Seconds implements Cost.
func (e *elementwise) Seconds(w *sim.Work) (s float64, beyond bool) {
	return e.of(float64(w.Tokens))
}

// of returns the time of n tokens and reports whether n exceeds the measured rows.
func (e *elementwise) of(n float64) (t float64, outside bool) {
	if n <= 0 {
		return 0, false
	}
	t, outside = e.measured.cost(n)
	launch := e.launch()
	return math.Max(launch, launch+e.scale*(t-launch)), outside
}

// launch returns the first row's time.
func (e *elementwise) launch() float64 { return e.measured.y[0] }
