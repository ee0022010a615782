package hw

import (
	"fmt"
	"slices"
)

// gemmGrid returns the GEMM grid for weights of the given bytes, and reports whether it was
// measured with such weights. Otherwise it returns the 16-bit grid; nil if the kernels have no
// grid.
func (p *Profile) gemmGrid(m *Model, bytes float64) (g *Grid, native bool) {
	if g = p.grid(GridGEMM, m.typeOf(bytes)); g != nil {
		return g, true
	}
	return p.grid(GridGEMM, "bf16"), bytes == 2
}

// typeOf returns the type of linears with the given bytes per weight, as grids name it.
func (m *Model) typeOf(bytes float64) string {
	switch {
	case bytes >= 2:
		return "bf16"
	case m.WeightType != "":
		return m.WeightType
	case bytes == mxfp4Bytes:
		return "mxfp4"
	case bytes == 1 && m.WeightBlock > 0:
		return "fp8_block"
	case bytes == 1:
		return "fp8"
	}
	return "nvfp4"
}

// hasLinears returns an error if the kernels have no GEMMs with arithmetic of the model's type.
// Weights alone of fewer bits are widened before 16-bit arithmetic, so their time is derived.
func (p *Profile) hasLinears(m *Model) error {
	kind := m.typeOf(m.WeightBytesEach)
	if _, native := p.gemmGrid(m, m.WeightBytesEach); native || kind != "int8" && kind != "nvfp4" &&
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
func gridded(p *Profile, g *Grid, native bool, all []matrix, weights, bytes float64) gemm {
	l := gemm{peak: p.peak(), weights: weights, bytes: bytes, scale: 1, exact: true}
	l.peak.flops = p.card().PeakOf(g.Type)
	l.measured = griddedCurve(p, g, all, weights, l.peak.flops)
	if ragged := p.grid(GridRagged, g.Type); ragged != nil {
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
func griddedCurve(p *Profile, g *Grid, all []matrix, weights, peak float64) (c curve) {
	at := newLattice(g)
	for _, tokens := range g.Axes[0].At {
		sum := 0.0
		for _, m := range all {
			t, _ := at.seconds(Sizes{tokens, float64(m.columns), float64(m.rows)})
			sum += t
		}
		busy := min(1, 2*tokens*weights/peak/sum)
		c.add(tokens, sum/(1-busy*p.clockGain()))
	}
	return c
}

// clockGain returns the largest fraction of time that linears save at the full clock; 0 if the
// card's clock was not measured.
func (p *Profile) clockGain() (share float64) {
	for _, r := range p.Clock.Gain {
		share = max(share, r.SI())
	}
	return share
}

func (p *Profile) card() *Card { return &Card{GPU: p.GPU} }
