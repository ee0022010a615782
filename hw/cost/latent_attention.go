package cost

import (
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
)

// latentDecode models a layer's decode attention over latents, absorbed: queries are projected into
// the latent space, so all heads of a GPU attend to the same rows, which are read once
// (DeepSeek-V2, 2024, section 2.1.2).
//
//	t = max(floor, launch + max(n row / rate, n FLOPs / R)),  FLOPs = 2 H (r + d) + 2 H r
//
// with latents of r values and d rotated ones, H heads, and row the bytes per token. The many heads
// per row make the kernel compute bound. The tensor cores multiply at least 64 rows, so fewer heads
// take as long as 64. If the kernels have a latent_decode grid, it gives the times. Otherwise
// launch, floor and rate are the figures of decode attention, or of attention to selected blocks if
// an indexer selects rows. R is prefill attention's rate for long chunks.
type latentDecode struct {
	peak                peak
	launch, floor, rate float64
	compute             float64 // R, FLOP/s
	row                 float64
	flops, computed     float64 // per token; with the rows that the tensor cores pad

	grid  *lattice // by requests, tokens and heads; nil: by bytes and FLOPs
	heads float64
}

func newLatentDecode(p *hw.Profile, m *llm.Model, s hw.Stream) *latentDecode {
	heads := float64(m.QHeads)
	padded := math.Ceil(heads/hw.TileRows) * hw.TileRows
	each := float64(2*m.LatentDim() + 2*m.KVRank)
	l := &latentDecode{peak: peakOf(p), launch: s.Launch.SI(), floor: s.Floor.Optional(),
		rate: s.Rate.SI(), compute: attentionRate(p), row: float64(m.LayerKVBytesPerToken()),
		flops: heads * each, computed: padded * each, heads: heads}
	if g := p.GridOf(hw.GridLatent, m.KVType()); g != nil && !m.IsIndexed() {
		l.grid = newLattice(g)
		l.launch = slices.Min(g.Times) * 1e-6
	}
	return l
}

// attentionRate returns the rate of prefill attention for the longest chunks, FLOP/s.
func attentionRate(p *hw.Profile) float64 {
	return p.Prefill[len(p.Prefill)-1].Rate.SI()
}

// verify returns the time of n tokens, summed over requests, with several queries per request. The
// queries of a request read its rows together.
func (l *latentDecode) verify(n, requests, queries float64) float64 {
	if n <= 0 {
		return 0
	}
	if l.grid != nil {
		requests = max(1, requests)
		t, _ := l.grid.seconds(hw.Sizes{requests, n / requests, l.heads * queries})
		return max(t, l.peak.floor(n*queries*l.flops, n*l.row))
	}
	t := l.launch + math.Max(n*l.row/l.rate, n*queries*l.computed/l.compute)
	return max(t, l.floor, l.peak.floor(n*queries*l.flops, n*l.row))
}

// newLatentPrefill prices a layer's prefill attention over latents. Without an indexer, latents are
// decompressed to keys and values, whose sizes differ. Latents before the chunk are projected again
// for each chunk. With an indexer, each query attends to its own selected rows, absorbed. A CTA has
// up to 64 heads of one query, so short chunks are as efficient as long ones once all SMs are busy.
//
//	FLOPs a pair = 2 H (nope + d + v), or 2 H (r + d) + 2 H r
func newLatentPrefill(p *hw.Profile, m *llm.Model) prefillAttention {
	a := newPrefillAttention(p, m, 0)
	if m.IsIndexed() {
		heads := float64(m.QHeads)
		a.flops = heads * float64(2*m.LatentDim()+2*m.KVRank)
		a.pad = math.Ceil(heads/hw.TileRows) * hw.TileRows / heads
		a.window, a.rows = float64(m.IndexTopK), 1
		a.heads = math.Ceil(heads / hw.TileRows)
		a.rate, a.waveRate = curve{}, attentionRate(p)
		a.rate.add(1, a.waveRate)
		a.measured, a.shared, a.grid = 0, 0, nil // one rate for all chunks
		return a
	}
	a.flops, a.grid = 2*float64(m.QHeads*(m.HeadDim+m.ValueDim)), nil
	if g := p.GridOf(hw.GridLatentPrefill, m.KVType()); g != nil {
		a.useGrid(newPromptGrid(g, float64(m.QHeads)), 1)
	}
	up := newGEMMOf(p, m, []llm.Matrix{{Rows: m.KVRank, Columns: m.QHeads * (m.NopeDim + m.ValueDim)}},
		m.WeightBytesEach)
	a.up = &up
	return a
}
