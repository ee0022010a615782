package cost

import (
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// layerOverhead is the overhead of layers by attention, seconds; 0 without a row.
type layerOverhead struct {
	dense, sparse, psa float64
	prompts            float64                              // of layers that only prefill
	chunk              struct{ dense, sparse, psa float64 } // of layers that also prefill a chunk
}

// newLayerOverhead reads the rows that fit the options. With GPU lookup, decode layers with dense
// attention look up their lists of all blocks, too, so dense overhead grows as much as sparse
// overhead. The overhead of a chunk does not depend on the lookup, and is the same for PSA as for
// other selections; it is 0 without a row.
func newLayerOverhead(p *hw.Profile, opts *DeviceOptions) layerOverhead {
	g := layerOverhead{dense: p.Overhead(hw.OverheadDense, "", false),
		sparse: p.Overhead(hw.OverheadSparse, "", false), psa: p.Overhead(hw.OverheadPSA, "", false)}
	g.prompts = g.dense // prompts have no lookup
	dense, sparse := p.Overhead(hw.OverheadDense, "", true), p.Overhead(hw.OverheadSparse, "", true)
	if opts.GPULookup {
		g.dense += max(0, p.Overhead(hw.OverheadSparse, hw.OverheadGPULookup, false)-g.sparse)
		g.sparse = p.Overhead(hw.OverheadSparse, hw.OverheadGPULookup, false)
		if psa := p.Overhead(hw.OverheadPSA, hw.OverheadGPULookup, false); psa > 0 {
			g.psa = psa
		}
	}
	g.chunk.dense, g.chunk.sparse, g.chunk.psa = g.dense+dense, g.sparse+sparse, g.psa+sparse
	return g
}

// of returns the overhead of a layer. The overhead of a layer with prompts only is not measured; it
// is assumed equal to that of decodes with dense attention.
func (g *layerOverhead) of(w *sim.Work) des.Time {
	if w.Decodes == 0 {
		return nanoseconds(g.prompts)
	}
	dense, sparse, psa := g.dense, g.sparse, g.psa
	if len(w.Prefill) > 0 {
		dense, sparse, psa = g.chunk.dense, g.chunk.sparse, g.chunk.psa
	}
	switch {
	case len(w.Rounds) > 0:
		return nanoseconds(psa)
	case w.Sparse:
		return nanoseconds(sparse)
	}
	return nanoseconds(dense)
}
