package hw

import (
	"fmt"

	"github.com/sparseserve/sparseserve/internal/tomlfile"
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

// GPULookup reports whether the profile has the overhead of layers with GPU lookup.
func (p *Profile) GPULookup() bool {
	return p.Overhead(OverheadSparse, OverheadGPULookup, false) > 0
}

// Overhead returns the overhead of a decode layer, or what a chunk adds to it; 0 without its row.
func (p *Profile) Overhead(attention, lookup string, chunk bool) float64 {
	for _, r := range p.LayerOverhead {
		if r.Attention == attention && r.Lookup == lookup && r.Chunk == chunk {
			return r.SI()
		}
	}
	return 0
}

// checkOverhead returns an error if a row names a kind of layer that does not exist.
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
	}
	return nil
}
