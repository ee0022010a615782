package hw

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// SparseRow is sparse prefill attention of one pattern.
type SparseRow struct {
	Pattern string `toml:"pattern"`
	Launch  Figure `toml:"launch" dim:"time"` // of a layer's heads of the pattern, index and attention
	// Efficiency is the kernel's rate as a share of dense prefill attention's, chunk for chunk.
	Efficiency Figure `toml:"efficiency" dim:"ratio"`
	// Index is the rate at which the bytes of an index are moved, as a share of HBM bandwidth.
	Index Figure `toml:"index,omitempty" dim:"ratio,optional"`
}

// sparsePrefill is one layer's sparse causal attention of prompt chunks. The heads of a pattern
// share a kernel, and the kernels come one after another:
//
//	t     = sum_p launch_p + sum_i FLOPs_ip / (efficiency_p rate(q_i)) + index
//	FLOPs = 4 d sum_h pairs_h(q, prefix)          (pattern.Head.Pairs)
//	index = sum_h bytes_h(q, prefix) / (index_p HBM)   (pattern.Head.IndexBytes)
//
// rate is prefillAttention's. Never below FLOPs at peak, nor below the K and V that the last
// row keeps at HBM bandwidth.
type sparsePrefill struct {
	dense   prefillAttention
	dim     int
	hbm     float64
	rows    map[pattern.Kind]sparseCost
	assumed bool // the card has no rows of its own
}

type sparseCost struct{ launch, efficiency, index float64 }

func newSparsePrefill(p *Profile, m *Model, dense prefillAttention) sparsePrefill {
	s := sparsePrefill{
		dense: dense, dim: m.HeadDim, hbm: p.GPU.HBMBandwidth.SI(), rows: map[pattern.Kind]sparseCost{},
	}
	rows := p.SparsePrefill
	if s.assumed = len(rows) == 0; s.assumed {
		rows = publishedRows()
	}
	for _, r := range rows {
		s.rows[pattern.Kind(r.Pattern)] = sparseCost{r.Launch.SI(), r.Efficiency.SI(), r.Index.optional()}
	}
	return s
}

// publishedRows are those of MInference's own kernels. All but the launches are shares of what
// a card's dense kernel and its HBM do.
var publishedRows = sync.OnceValue(func() []SparseRow {
	k, err := loadKernels("ampere", "")
	if err != nil {
		panic(err) // a built-in file
	}
	return k.SparsePrefill
})

// freeSparseRows are of kernels as fast as the dense one, with indices as fast as HBM.
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

// of returns the time of attention and of the indices, seconds.
func (s *sparsePrefill) of(groups []pattern.Group, spans []sim.Span) (attention, index float64) {
	for _, g := range groups {
		cost, ran := s.rows[g.Kind], false
		for _, span := range spans {
			if span.Query <= 0 {
				continue
			}
			ran = true
			attention += s.attention(&g, cost, span)
			if g.Kind.Indexed() {
				rate := math.Min(1, cost.index) * s.hbm
				index += g.Heads * g.IndexBytes(span.Query, span.Prefix, s.dim) / rate
			}
		}
		if ran {
			attention += cost.launch
		}
	}
	return attention, index
}

func (s *sparsePrefill) attention(g *pattern.Group, cost sparseCost, span sim.Span) float64 {
	rate, _ := s.dense.rate.power(math.Max(float64(span.Query), s.dense.shortest()))
	share := g.Heads / s.dense.heads
	flops := share * s.dense.flops * g.Pairs(span.Query, span.Prefix)
	bytes := share * s.dense.kvBytes * g.Kept(float64(span.Prefix+span.Query))
	return math.Max(flops/(cost.efficiency*rate), s.dense.peak.floor(flops, bytes))
}

// checkSparseRows wants each pattern once, with an index where it has one.
func checkSparseRows(rows []SparseRow) error {
	const name = "sparse_prefill"
	seen := map[pattern.Kind]bool{}
	for i, r := range rows {
		path, kind := fmt.Sprintf("%s[%d]", name, i), pattern.Kind(r.Pattern)
		switch {
		case !slices.Contains(pattern.Kinds(), kind):
			return wrong(path+".pattern", "unknown %q; want %s", r.Pattern, pattern.Kinds())
		case seen[kind]:
			return wrong(path+".pattern", "a second row of %s", kind)
		case r.Index.Set() != kind.Indexed():
			return wrong(path+".index", "want it of vertical-slash and block-sparse, whose keys are "+
				"found for each prompt, and of no other")
		}
		seen[kind] = true
	}
	for _, kind := range pattern.Kinds() {
		if len(rows) > 0 && !seen[kind] {
			return wrong(name, "want a row of %s, or no rows", kind)
		}
	}
	return nil
}
