package hw

// gemmGrid returns the GEMM grid for weights of the given bytes, and reports whether it was
// measured with such weights. Otherwise it returns the 16-bit grid; nil if the kernels have no
// grid.
func (p *Profile) gemmGrid(m *Model, bytes float64) (g *Grid, native bool) {
	kind := "bf16"
	switch {
	case bytes == 1 && m.WeightBlock > 0:
		kind = "fp8_block"
	case bytes == 1:
		kind = "fp8"
	case bytes < 1:
		kind = "nvfp4"
	}
	if g = p.grid(GridGEMM, kind); g != nil {
		return g, true
	}
	return p.grid(GridGEMM, "bf16"), bytes == 2
}

// gridded sums the times of matrices with one kernel each. Grids are measured in short loops at the
// full clock. Linears in sequence exceed the power limit, the more the busier the tensor cores are.
// They take longer by that fraction of the gain measured for the card's clock.
func gridded(p *Profile, g *Grid, native bool, all []matrix, weights, bytes float64) gemm {
	l := gemm{peak: p.peak(), weights: weights, bytes: bytes, scale: 1, exact: true}
	l.peak.flops = p.card().PeakOf(g.Type)
	l.measured = griddedCurve(p, g, all, weights, l.peak.flops)
	if ragged := p.grid(GridRagged, g.Type); ragged != nil {
		l.ragged = griddedCurve(p, ragged, all, weights, l.peak.flops)
	}
	l.narrow = narrow{bytes: 1, compute: 1}
	if !native {
		l.narrow = newNarrow(p, bytes, l.measured, 0)
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
