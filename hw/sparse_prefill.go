package hw

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/internal/tomlfile"
	"github.com/sparseserve/sparseserve/sim"
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

// sparsePrefill models one layer's sparse causal attention of prompt chunks:
//
//	t     = sum_p launch_p + sum_i FLOPs_ip / (efficiency_p rate(q_i))
//	index = sum_h bytes_h(q, prefix) / (index_p HBM)   (pattern.Head.IndexBytes)
//	tiles = sum_h tiles_h(q, prefix) tile_p            (pattern.Head.Tiles)
//
// Tiles belong to the index, where there is one, else to attention.
// rate is prefillAttention's and FLOPs are 4 d sum_h pairs_h(q, prefix). Lower bounds are FLOPs at
// peak, and the K and V of the last row, or an index's bytes, at HBM bandwidth. MInference's own
// kernels launch once per group of equal heads; this project's are fused.
type sparsePrefill struct {
	dense prefillAttention
	dim   int
	hbm   float64
	rows  map[pattern.Kind]sparseCost
}

type sparseCost struct {
	launch, efficiency, index, columns, tile float64

	fused, assumed bool // assumed: the card has no row for this pattern
}

func newSparsePrefill(p *Profile, m *llm.Model, dense prefillAttention) sparsePrefill {
	s := sparsePrefill{
		dense: dense, dim: m.HeadDim, hbm: p.GPU.HBMBandwidth.SI(), rows: map[pattern.Kind]sparseCost{},
	}
	add := func(rows []SparseRow, assumed bool) {
		for _, r := range rows {
			s.rows[pattern.Kind(r.Pattern)] = sparseCost{
				launch: r.Launch.SI(), efficiency: r.Efficiency.SI(), index: r.Index.optional(),
				columns: r.Columns.optional(), tile: r.Tile.optional(), fused: r.Fused, assumed: assumed,
			}
		}
	}
	add(publishedRows(), true)
	add(p.SparsePrefill, false)
	return s
}

// publishedRows returns the rows of MInference's own kernels. All figures but launches are shares
// of the rates of the card's dense kernel and HBM.
var publishedRows = sync.OnceValue(func() []SparseRow {
	k, err := loadKernels("ampere", "")
	if err != nil {
		panic(err) // a built-in file
	}
	return k.SparsePrefill
})

// freeSparseRows returns rows of kernels as fast as the dense kernel, with indices as fast as HBM.
func freeSparseRows() []SparseRow {
	rows := slices.Clone(publishedRows())
	for i := range rows {
		r := &rows[i]
		r.Launch.Value, r.Launch.Unit, r.Efficiency.Value = noTime, "s", 1
		if r.Index.Set() {
			r.Index.Value = 1
		}
	}
	return rows
}

// assumes reports whether the card has no row for the pattern of some group.
func (s *sparsePrefill) assumes(groups []pattern.Group) bool {
	return slices.ContainsFunc(groups, func(g pattern.Group) bool { return s.rows[g.Kind].assumed })
}

// of returns the seconds of attention and of the indices.
func (s *sparsePrefill) of(groups []pattern.Group, spans []sim.Span) (attention, index float64) {
	tensors := false
	for i := range groups {
		g := &groups[i]
		cost, ran, t, found := s.rows[g.Kind], false, 0.0, 0.0
		for _, span := range spans {
			if span.Query <= 0 {
				continue
			}
			ran = true
			t += s.attention(g, cost, span)
			tiles := g.Heads * g.Tiles(span.Query, span.Prefix) * cost.tile
			if g.Kind.Indexed() {
				rate := math.Min(1, cost.index) * s.hbm
				found += tiles + g.Heads*g.IndexBytes(span.Query, span.Prefix, s.dim)/rate
			} else {
				t += tiles
			}
		}
		tensors = tensors || cost.fused
		if launched := cost.fused && slices.ContainsFunc(groups[:i], func(o pattern.Group) bool {
			return o.Kind == g.Kind
		}); ran && !launched {
			t += cost.launch
		}
		attention, index = attention+t, index+found
	}
	if tensors {
		for _, span := range spans {
			attention += s.dense.gathered(span)
		}
	}
	return attention, index
}

func (s *sparsePrefill) attention(g *pattern.Group, cost sparseCost, span sim.Span) float64 {
	rate, _ := s.dense.rate.power(math.Max(float64(span.Query), s.dense.shortest()))
	flops, floor := s.work(g, span)
	t := flops / (cost.efficiency * rate)
	if cost.columns > 0 {
		columns := g.Heads / s.dense.heads * s.dense.flops * g.Gathered(span.Query, span.Prefix)
		t = (flops-columns)/(cost.efficiency*rate) + columns/(cost.columns*rate)
	}
	return math.Max(t, floor)
}

// work returns the FLOPs of a group's attention and the lower bound of its time in seconds.
func (s *sparsePrefill) work(g *pattern.Group, span sim.Span) (flops, floor float64) {
	share := g.Heads / s.dense.heads
	flops = share * s.dense.flops * g.Pairs(span.Query, span.Prefix)
	bytes := share * s.dense.kvBytes * g.Kept(float64(span.Prefix+span.Query))
	return flops, s.dense.peak.floor(flops, bytes)
}

// checkSparseRows checks that each pattern occurs once and that each row is complete.
func checkSparseRows(rows []SparseRow) error {
	const name = "sparse_prefill"
	seen := map[pattern.Kind]bool{}
	for i, r := range rows {
		path, kind := fmt.Sprintf("%s[%d]", name, i), pattern.Kind(r.Pattern)
		switch {
		case !slices.Contains(pattern.Kinds(), kind):
			return tomlfile.Wrong(path+".pattern", "unknown %q; want %s", r.Pattern, pattern.Kinds())
		case seen[kind]:
			return tomlfile.Wrong(path+".pattern", "a second row of %s", kind)
		}
		if r.Index.Set() != kind.Indexed() {
			return tomlfile.Wrong(path+".index", "want it for vertical-slash and block-sparse, whose keys "+
				"are found for each prompt, and for no other pattern")
		}
		if r.Columns.Set() && kind != pattern.VerticalSlash {
			return tomlfile.Wrong(path+".columns", "means nothing but for vertical-slash")
		}
		seen[kind] = true
	}
	return nil
}
