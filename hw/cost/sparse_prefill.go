package cost

import (
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

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

func newSparsePrefill(p *hw.Profile, m *llm.Model, dense prefillAttention) sparsePrefill {
	s := sparsePrefill{
		dense: dense, dim: m.HeadDim, hbm: p.GPU.HBMBandwidth.SI(), rows: map[pattern.Kind]sparseCost{},
	}
	add := func(rows []hw.SparseRow, assumed bool) {
		for _, r := range rows {
			s.rows[pattern.Kind(r.Pattern)] = sparseCost{
				launch: r.Launch.SI(), efficiency: r.Efficiency.SI(), index: r.Index.Optional(),
				columns: r.Columns.Optional(), tile: r.Tile.Optional(), fused: r.Fused, assumed: assumed,
			}
		}
	}
	add(hw.PublishedRows(), true)
	add(p.SparsePrefill, false)
	return s
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
