package cost

import (
	"fmt"
	"slices"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
)

// gemmGrid returns the GEMM grid for weights of the given bytes, and reports whether it was
// measured with such weights. Otherwise it returns the 16-bit grid; nil if the kernels have no
// grid.
func gemmGrid(p *hw.Profile, m *llm.Model, bytes float64) (g *hw.Grid, native bool) {
	if g = p.GridOf(hw.GridGEMM, m.LinearType(bytes)); g != nil {
		return g, true
	}
	return p.GridOf(hw.GridGEMM, "bf16"), bytes == 2
}

// hasLinears returns an error if the kernels have no GEMMs with arithmetic of the model's type.
// Weights alone of fewer bits are widened before 16-bit arithmetic, so their time is derived.
func hasLinears(p *hw.Profile, m *llm.Model) error {
	kind := m.LinearType(m.WeightBytesEach)
	if _, native := gemmGrid(p, m, m.WeightBytesEach); native || kind != "int8" && kind != "nvfp4" &&
		kind != "mxfp4" {
		return nil
	}
	return fmt.Errorf("model %s: weights of %s (quantization_config, weight_type): no such "+
		"GEMMs are measured on %s; take a checkpoint in FP8 or 16 bits, or another card: sparseserve "+
		"list gpus", m.Name, kind, p.Name)
}

// gridded sums the times of matrices with one kernel each. Grids are measured in short loops at the
// full clock. Linears in sequence exceed the power limit, the more the busier the tensor cores are.
// They take longer by that fraction of the gain measured for the card's clock. If the weights are
// narrower than the grid's, the shortest time of a matrix counts as its launch.
func gridded(p *hw.Profile, g *hw.Grid, native bool, all []llm.Matrix,
	weights, bytes float64) gemm {
	l := gemm{peak: peakOf(p), weights: weights, bytes: bytes, scale: 1, exact: true}
	l.peak.flops = p.GPU.PeakOf(g.Type)
	l.measured = griddedCurve(p, g, all, weights, l.peak.flops)
	if ragged := p.GridOf(hw.GridRagged, g.Type); ragged != nil {
		l.ragged = griddedCurve(p, ragged, all, weights, l.peak.flops)
	}
	l.narrow = narrow{bytes: 1, compute: 1}
	if !native {
		l.launches = min(float64(len(all))*slices.Min(g.Times)*1e-6, l.measured.y[0])
		l.launch = l.launches
		l.narrow = newNarrow(p, bytes, l.measured, l.launches)
		l.scale = max(bytes, 2) / 2
		l.peak.flops = l.narrow.flops
	}
	return l
}

// griddedCurve returns the time of matrices by tokens.
func griddedCurve(p *hw.Profile, g *hw.Grid, all []llm.Matrix, weights, peak float64) (c curve) {
	at := newLattice(g)
	for _, tokens := range g.Axes[0].At {
		sum := 0.0
		for _, m := range all {
			t, _ := at.seconds(hw.Sizes{tokens, float64(m.Columns), float64(m.Rows)})
			sum += t
		}
		busy := min(1, 2*tokens*weights/peak/sum)
		c.add(tokens, sum/(1-busy*clockGain(p)))
	}
	return c
}

// clockGain returns the largest fraction of time that linears save at the full clock; 0 if the
// card's clock was not measured.
func clockGain(p *hw.Profile) (share float64) {
	for _, r := range p.Clock.Gain {
		share = max(share, r.SI())
	}
	return share
}
