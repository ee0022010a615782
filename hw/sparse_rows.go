package hw

import (
	"fmt"
	"slices"
	"sync"

	"github.com/sparseserve/sparseserve/internal/tomlfile"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// SparseRow is the cost of sparse prefill attention with one pattern.
type SparseRow struct {
	Pattern string `toml:"pattern"`
	// Fused launches the kernel once for all heads of the pattern, over tensors: K and V of a chunk
	// after earlier ones are first copied from their blocks. Else each group of equal heads launches.
	Fused bool `toml:"fused,omitempty"`
	// of a layer's heads of the pattern, and their index
	Launch Figure `toml:"launch" dim:"time"`
	// rate relative to dense prefill attention with the same chunk
	Efficiency Figure `toml:"efficiency" dim:"ratio"`
	// rate of reading and writing an index, relative to HBM bandwidth
	Index Figure `toml:"index,omitempty" dim:"ratio,optional"`
	// Columns is the efficiency of keys that are gathered one at a time; not set: as of blocks.
	Columns Figure `toml:"columns,omitempty" dim:"ratio,optional"`
	// Tile is the time of a tile of queries (pattern.Head.Tiles): in the index, where there is one,
	// else in attention.
	Tile Figure `toml:"tile,omitempty" dim:"time,optional"`
}

// PublishedRows returns the rows of MInference's own kernels. All figures but launches are shares
// of the rates of the card's dense kernel and HBM.
var PublishedRows = sync.OnceValue(func() []SparseRow {
	k, err := loadKernels("ampere", "")
	if err != nil {
		panic(err) // a built-in file
	}
	return k.SparsePrefill
})

// freeSparseRows returns rows of kernels as fast as the dense kernel, with indices as fast as HBM.
func freeSparseRows() []SparseRow {
	rows := slices.Clone(PublishedRows())
	for i := range rows {
		r := &rows[i]
		r.Launch.Value, r.Launch.Unit, r.Efficiency.Value = noTime, "s", 1
		if r.Index.Set() {
			r.Index.Value = 1
		}
	}
	return rows
}

// checkSparseRows returns an error if a row names no known pattern, or its figures are not those of
// the pattern.
func checkSparseRows(rows []SparseRow) error {
	const name = "sparse_prefill"
	for i, r := range rows {
		path, kind := fmt.Sprintf("%s[%d]", name, i), pattern.Kind(r.Pattern)
		if !slices.Contains(pattern.Kinds(), kind) {
			return tomlfile.Wrong(path+".pattern", "unknown %q; want %s", r.Pattern, pattern.Kinds())
		}
		if r.Index.Set() != kind.Indexed() {
			return tomlfile.Wrong(path+".index", "want it for vertical-slash and block-sparse, whose keys "+
				"are found for each prompt, and for no other pattern")
		}
		if r.Columns.Set() && kind != pattern.VerticalSlash {
			return tomlfile.Wrong(path+".columns", "means nothing but for vertical-slash")
		}
	}
	return nil
}
