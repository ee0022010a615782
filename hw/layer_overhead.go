package hw

import (
	"fmt"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// OverheadRow is the time of a layer in its row beyond its kernels measured one by one:
// back-to-back kernels are a launch's latency apart and run with colder caches than the
// isolated probes, and small kernels that no probe measures, such as the write of K and V
// and the copy of the layer's lists, are in it. It is one figure a kind of layer.
type OverheadRow struct {
	Attention string `toml:"attention"` // dense | sparse | psa
	// gpu: where the GPU looks lists up, its lookup included
	Lookup string `toml:"lookup,omitempty"`
	// what it grows by in a layer that also prefills a chunk
	Chunk  bool `toml:"chunk,omitempty"`
	Figure `dim:"time" on:"gpu"`
}

// What a OverheadRow's attention may be.
const (
	OverheadDense  = "dense"
	OverheadSparse = "sparse"
	OverheadPSA    = "psa"
)

// OverheadGPULookup is Lookup of rows where the GPU looks lists up.
const OverheadGPULookup = "gpu"

// layerOverhead is that of layers by attention, seconds; 0 without a row.
type layerOverhead struct {
	dense, sparse, psa float64
	prompts            float64                              // of layers that only prefill
	chunk              struct{ dense, sparse, psa float64 } // of layers that also prefill a chunk
}

// newLayerOverhead reads the rows that fit the options. Where the GPU looks lists up, a layer of
// decodes with dense attention has its lists of all blocks looked up too: its overhead grows by
// as much as that of sparse attention. What a chunk adds is the same whoever looks them up, and
// with PSA as with other selections; nothing without a row.
func newLayerOverhead(p *Profile, opts *DeviceOptions) layerOverhead {
	g := layerOverhead{dense: p.LayerOverheadSeconds(OverheadDense, ""),
		sparse: p.LayerOverheadSeconds(OverheadSparse, ""), psa: p.LayerOverheadSeconds(OverheadPSA, "")}
	g.prompts = g.dense // nothing is looked up
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

// GPULookup reports whether the profile knows layers whose lists the GPU looks up.
func (p *Profile) GPULookup() bool {
	return p.LayerOverheadSeconds(OverheadSparse, OverheadGPULookup) > 0
}

// LayerOverheadSeconds returns the overhead of a layer of decodes, 0 without its row.
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

// of is the overhead of a layer. That of one of prompts alone, which selects nothing, is not
// measured; it is taken to be that of decodes with dense attention.
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

// checkOverhead wants each kind of layer once.
func checkOverhead(rows []OverheadRow) error {
	for i, r := range rows {
		path := fmt.Sprintf("layer_overhead[%d]", i)
		selects := r.Attention == OverheadSparse || r.Attention == OverheadPSA
		switch {
		case r.Attention != OverheadDense && !selects:
			return wrong(path+".attention", "want %s, %s or %s, got %q",
				OverheadDense, OverheadSparse, OverheadPSA, r.Attention)
		case r.Lookup != "" && r.Lookup != OverheadGPULookup:
			return wrong(path+".lookup", "want %s, or nothing, got %q", OverheadGPULookup, r.Lookup)
		case r.Lookup != "" && !selects:
			return wrong(path+".lookup", "means nothing for %s", r.Attention)
		case r.Chunk && (r.Lookup != "" || r.Attention == OverheadPSA):
			return wrong(path+".chunk", "want a row of %s or %s attention without lookup, got %q with "+
				"lookup %q", OverheadDense, OverheadSparse, r.Attention, r.Lookup)
		}
		for _, before := range rows[:i] {
			if before.Attention == r.Attention && before.Lookup == r.Lookup && before.Chunk == r.Chunk {
				return wrong(path+".attention",
					"want one row a kind of layer, got a second one of %q with lookup %q, chunk %t",
					r.Attention, r.Lookup, r.Chunk)
			}
		}
	}
	return nil
}
