package hw

import (
	"cmp"
	"fmt"

	"github.com/sparseserve/sparseserve/internal/tomlfile"
)

// Validate returns an error for the first wrong key.
func (p *Profile) Validate() error {
	return cmp.Or(check(p), p.KernelCosts.validate(), p.EngineCosts.validate())
}

// validate checks figures that depend on each other.
func (p *KernelCosts) validate() error {
	return cmp.Or(p.checkTokenRows("linears", p.Linears), p.checkTokenRows("pointwise", p.Pointwise),
		p.checkGrids(), p.checkGain(), p.checkTogether(), p.checkPrefill(),
		checkSparseRows(p.SparsePrefill))
}

// checkTogether checks that figures that are used together are set together.
func (p *KernelCosts) checkTogether() error {
	if p.Clock.GEMMSteadyRatio.Set() != p.Clock.Settling.Set() {
		return tomlfile.Wrong("clock.gemm_steady_ratio", "want it together with settling, or neither")
	}
	if p.Paged.Copy.Set() && !p.Paged.Rows.Set() {
		return tomlfile.Wrong("paged_prefill.copy", "means nothing without paged_prefill.rows")
	}
	for name, s := range map[string]*Stream{"sparse_decode": &p.SparseDecode, "scoring": &p.Scoring} {
		if s.L2Rate.Set() {
			return tomlfile.Wrong(name+".l2_rate", "is a figure of dense_decode")
		}
	}
	return nil
}

// checkGain checks that rows have known shapes, and that a clock exists.
func (p *KernelCosts) checkGain() error {
	c := &p.Clock
	if c.GEMMSteadyRatio.Set() != (len(c.Gain) > 0) {
		return tomlfile.Wrong("clock.gain", "want at least one row and clock.gemm_steady_ratio, or "+
			"neither")
	}
	return p.checkShapes("clock.gain", len(c.Gain), func(i int) string { return c.Gain[i].Shape })
}

// checkTokenRows checks for known shapes, and times that never fall by half or
// more. They may fall, because a library may select a better kernel for more tokens.
func (p *KernelCosts) checkTokenRows(name string, rows []TokenRow) error {
	err := p.checkShapes(name, len(rows), func(i int) string { return rows[i].Shape })
	if err != nil {
		return err
	}
	last := map[string]TokenRow{}
	for i, r := range rows {
		if prev := last[r.Shape]; r.SI() < prev.SI()/2 {
			return tomlfile.Wrong(fmt.Sprintf("%s[%d].value", name, i),
				"more tokens never cost less than half: got %v %s after %v %s",
				r.Value, r.Unit, prev.Value, prev.Unit)
		}
		last[r.Shape] = r
	}
	return nil
}

// checkShapes checks that rows have known shapes.
func (p *KernelCosts) checkShapes(name string, n int, shape func(i int) string) error {
	for i := range n {
		if p.ShapeOf(shape(i)) == nil {
			var known []string
			for _, s := range p.Shapes {
				known = append(known, s.Name)
			}
			return tomlfile.Wrong(fmt.Sprintf("%s[%d].shape", name, i), "want one of %q, got %q", known,
				shape(i))
		}
	}
	return nil
}

// checkPrefill checks that costs never fall.
func (p *KernelCosts) checkPrefill() error {
	const name = "prefill_attention"
	rows := p.Prefill
	for i := 1; i < len(rows); i++ {
		path, r, prev := fmt.Sprintf("%s[%d]", name, i), rows[i], rows[i-1]
		if r.Launch.SI() < prev.Launch.SI() {
			return tomlfile.Wrong(path+".launch", "longer queries never launch faster")
		}
		if r.Rate.SI()/prev.Rate.SI() > 1.001*float64(r.Query)/float64(prev.Query) { // rates are rounded
			return tomlfile.Wrong(path+".rate",
				"more query tokens never cost less: the rate grows faster than the query")
		}
	}
	return nil
}

// ShapeOf returns the named shape, or nil.
func (p *KernelCosts) ShapeOf(name string) *Shape {
	for i := range p.Shapes {
		if p.Shapes[i].Name == name {
			return &p.Shapes[i]
		}
	}
	return nil
}
