package hw

import (
	"fmt"

	"github.com/sparseserve/sparseserve/internal/tomlfile"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// OverheadRow is the time of a layer within a step beyond the sum of its kernels measured one by
// one. Back-to-back kernels are separated by launch latency and run with colder caches than
// isolated probes. Small kernels that no probe measures, such as the write of K and V and the copy
// of the layer's lists, are included. There is one figure per kind of layer.
type OverheadRow struct {
	Attention string `toml:"attention" values:"dense sparse psa"`
	// gpu: overhead of layers whose lists the GPU looks up, lookup included
	Lookup string `toml:"lookup,omitempty" values:"gpu"`
	// additional overhead of a layer that also prefills a chunk
	Chunk  bool `toml:"chunk,omitempty"`
	Figure `dim:"time" on:"gpu"`
}

// Values of OverheadRow.Attention.
const (
	OverheadDense  = "dense"
	OverheadSparse = "sparse"
	OverheadPSA    = "psa"
)

// OverheadGPULookup is the Lookup of rows in which the GPU looks lists up.
const OverheadGPULookup = "gpu"

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
func newLayerOverhead(p *Profile, opts *DeviceOptions) layerOverhead {
	g := layerOverhead{dense: p.LayerOverheadSeconds(OverheadDense, ""),
		sparse: p.LayerOverheadSeconds(OverheadSparse, ""), psa: p.LayerOverheadSeconds(OverheadPSA, "")}
	g.prompts = g.dense // prompts have no lookup
	dense, sparse := p.overheadOf(OverheadDense, "", true), p.overheadOf(OverheadSparse, "", true)
	if opts.GPULookup {
		g.dense += max(0, p.LayerOverheadSeconds(OverheadSparse, OverheadGPULookup)-g.sparse)
		g.sparse = p.LayerOverheadSeconds(OverheadSparse, OverheadGPULookup)
		if psa := p.LayerOverheadSeconds(OverheadPSA, OverheadGPULookup); psa > 0 {
			g.psa = psa
		}
	}
	g.chunk.dense, g.chunk.sparse, g.chunk.psa = g.dense+dense, g.sparse+sparse, g.psa+sparse
	return g
}

// GPULookup reports whether the profile has the overhead of layers with GPU lookup.
func (p *Profile) GPULookup() bool {
	return p.LayerOverheadSeconds(OverheadSparse, OverheadGPULookup) > 0
}

// LayerOverheadSeconds returns the overhead of a decode layer, or 0 without its row.
func (p *Profile) LayerOverheadSeconds(attention, lookup string) float64 {
	return p.overheadOf(attention, lookup, false)
}

func (p *Profile) overheadOf(attention, lookup string, chunk bool) float64 {
	for _, r := range p.LayerOverhead {
		if r.Attention == attention && r.Lookup == lookup && r.Chunk == chunk {
			return r.SI()
		}
	}
	return 0
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

// checkOverhead checks that each kind of layer has one row.
func checkOverhead(rows []OverheadRow) error {
	for i, r := range rows {
		path := fmt.Sprintf("layer_overhead[%d]", i)
		selects := r.Attention == OverheadSparse || r.Attention == OverheadPSA
		switch {
		case r.Lookup != "" && !selects:
			return tomlfile.Wrong(path+".lookup", "means nothing for %s", r.Attention)
		case r.Chunk && (r.Lookup != "" || r.Attention == OverheadPSA):
			return tomlfile.Wrong(path+".chunk", "want a row of %s or %s attention without lookup, got %q "+
				"with lookup %q", OverheadDense, OverheadSparse, r.Attention, r.Lookup)
		}
		for _, before := range rows[:i] {
			if before.Attention == r.Attention && before.Lookup == r.Lookup && before.Chunk == r.Chunk {
				return tomlfile.Wrong(path+".attention",
					"want one row a kind of layer, got a second one of %q with lookup %q, chunk %t",
					r.Attention, r.Lookup, r.Chunk)
			}
		}
	}
	return nil
}
