package cost

import (
	"cmp"
	"math"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
)

// prefillAttention models one layer's causal attention of prompt chunks. One kernel serves all
// requests.
//
//	t = max_i launch(q_i) + sum_i FLOPs_i / rate(q_i)
//	FLOPs = 4 d H (q prefix + q^2 / 2)
//
// A chunk has q query tokens after prefix earlier tokens, with H query heads of size d. launch and
// rate are interpolated in log q, so the efficiency FLOPs/(t peak) rises with q and with the KV
// length. A CTA walks the keys with a tile of queries. A chunk therefore costs at least as much as
// the shortest measured row, if that row has at most one tile of queries. The last chunk of a
// prompt is often that short.
//
// The time has three lower bounds: FLOPs at peak; K and V of prefix and chunk at HBM bandwidth;
// and, for a chunk with a prefix, the waves of the paged-KV kernel, if the profile has one. If the
// profile has the cost of that kernel's block copies, compute and copies overlap in part. They add
// as the two legs of a right triangle. No CTA is faster than its own copies; copies of the two CTAs
// on an SM overlap:
//
//	launch + t_i = max(launch + sqrt((FLOPs_i / rate)^2 + copies_i^2), copies of a CTA)
type prefillAttention struct {
	peak    peak
	launch  curve // query tokens, seconds
	rate    curve // query tokens, FLOP/s
	flops   float64
	kvBytes float64 // of one token in one layer
	heads   float64 // query heads
	kvHeads float64
	window  float64 // tokens of the sliding window; 0: whole context
	pad     float64 // computed FLOPs / useful FLOPs
	up      *gemm   // decompresses latents before a chunk to K and V; nil without latent attention
	rows    float64 // query tokens per CTA of the paged-KV kernel; 0: no such kernel
	sms     float64 // each runs one CTA of that kernel at full speed

	waveRate float64 // of full waves, FLOP/s
	measured float64 // query heads of the measured shape, for partial waves; 0: unknown

	blocks     bool    // K and V before a chunk are in KV blocks, not in tensors
	copy       float64 // of the rows of one block's K or V, s
	copied     float64 // rows per copy
	gatherRate float64 // bytes read and written per second, from blocks to tensors

	shared float64     // launch time that chunks share with decodes of the same step, s
	grid   *promptGrid // of prompts without a prefix; nil: use launch and rate
	wide   float64     // head size / head size of the grid
}

// newPrefillAttention prices attention over KV blocks of blockTokens tokens; 0: K and V are in
// tensors.
func newPrefillAttention(p *hw.Profile, m *llm.Model, blockTokens int) prefillAttention {
	a := prefillAttention{
		peak:    peakOf(p),
		flops:   4 * float64(m.HeadDim*m.QHeads),
		kvBytes: float64(m.LayerKVBytesPerToken()),
		heads:   float64(m.QHeads),
		kvHeads: float64(m.KVHeads),
		pad:     1,
		rows:    p.Paged.Rows.Optional(),
		sms:     p.GPU.SMs.SI(),

		blocks: blockTokens > 0, copy: p.Paged.Copy.Optional(), copied: rowsOfCopy(blockTokens),
		gatherRate: p.DenseDecode.Rate.SI(),
	}
	for _, r := range p.Prefill {
		a.launch.add(float64(r.Query), r.Launch.SI())
		a.rate.add(float64(r.Query), r.Rate.SI())
	}
	if a.waveRate = a.rate.y[len(a.rate.y)-1]; p.Paged.Rate.Set() {
		a.waveRate = p.Paged.Rate.SI()
		a.measured = float64(p.Shapes[0].QHeads)
	}
	if g := cmp.Or(p.GridOf(hw.GridPrefill, m.KVType()), p.GridOf(hw.GridPrefill, "bf16")); g != nil {
		a.useGrid(newPromptGrid(g, a.kvHeads, a.heads/a.kvHeads), float64(m.HeadDim)/gridHead)
	}
	return a
}

// useGrid prices prompts by a grid. Attention to tokens before a chunk runs at the rate of the
// grid's longest prompts. Engines with grids launch one kernel for chunks and decodes, so the
// launch is shared.
func (a *prefillAttention) useGrid(g *promptGrid, wide float64) {
	a.grid, a.wide, a.shared, a.measured = g, wide, g.launch, 0
	longest := g.tokens.last()
	a.waveRate = a.flops * longest * longest / 2 / g.each(longest) / wide
	a.rate = curve{}
	a.rate.add(g.tokens.x[0], a.waveRate)
}

// queryTile is the number of queries per CTA of a prefill kernel: 128 in this project's kernel and
// in FlashAttention-2 with heads of 128.
const queryTile = 128

// spanFLOPs returns the FLOPs of one request's chunk.
func (a *prefillAttention) spanFLOPs(s sim.Span) float64 {
	q := float64(s.Query)
	if a.window > 0 {
		return a.flops * q * a.keys(s)
	}
	return a.flops * (q*float64(s.Prefix) + q*q/2)
}

// keys is the mean number of keys that a query of a chunk attends to.
func (a *prefillAttention) keys(s sim.Span) float64 {
	q, prefix := float64(s.Query), float64(s.Prefix)
	switch {
	case a.window == 0 || prefix+q <= a.window:
		return prefix + q/2
	case prefix >= a.window:
		return a.window
	}
	grows := a.window - prefix // the first queries see the context grow
	return (grows*(prefix+grows/2) + (q-grows)*a.window) / q
}

// read returns the number of tokens whose K and V a chunk reads.
func (a *prefillAttention) read(s sim.Span) float64 {
	if a.window > 0 {
		return float64(s.Query) + math.Min(float64(s.Prefix), a.window)
	}
	return float64(s.Query) + float64(s.Prefix)
}

// waves returns the time of the CTAs of a chunk with a prefix, in seconds, or 0. An SM runs one
// CTA at full speed, so a chunk is no faster than its fullest SM. The last row block is computed
// whole. All CTAs attend to nearly the same number of keys.
//
//	t = ceil(T / SMs) SMs t_CTA,  T = ceil(q / rows) H
//	t_CTA = 4 d rows (prefix + q/2) / rate of the waves, or of long chunks
//
// Fewer CTAs than SMs take as long as one CTA alone, if that time is known.
func (a *prefillAttention) waves(s sim.Span) float64 {
	if a.rows == 0 || s.Prefix == 0 {
		return 0
	}
	q := float64(s.Query)
	tiles := math.Ceil(q/a.rows) * a.heads
	each := a.pad * a.flops / a.heads * a.rows * a.keys(s)
	if tiles <= a.sms && a.measured > 0 {
		tile := math.Min(q, queryTile) // the measured shape has one CTA per query head
		rate, _ := a.rate.power(tile)
		return each * tile / a.rows * a.measured / rate
	}
	return math.Ceil(tiles/a.sms) * a.sms * each / a.waveRate
}

// rowsOfCopy returns the rows of a block that one copy of the prefill kernel moves: the largest
// power of two, up to 64, that divides the block size (cuda/mi_produce.cuh).
func rowsOfCopy(blockTokens int) float64 { return float64(min(64, blockTokens&-blockTokens)) }

// copies returns how long the fullest SM issues copies of K and V for all tiles of a chunk with a
// prefix in KV blocks, and how long a CTA does. Copies of the two CTAs of an SM overlap:
//
//	sm = ceil(T / SMs) n copy,  cta = ceil(T / (2 SMs)) n 2 copy
//	n = 2 (prefix + q/2) / rows,  T = ceil(q / queries of a CTA) H
func (a *prefillAttention) copies(s sim.Span) (sm, cta float64) {
	if a.copy == 0 || !a.blocks || s.Prefix == 0 {
		return 0, 0
	}
	q := float64(s.Query)
	tiles := math.Ceil(q/a.rows) * a.heads
	each := 2 * a.keys(s) / a.copied * a.copy
	return math.Ceil(tiles/a.sms) * each, math.Ceil(tiles/(2*a.sms)) * 2 * each
}

// gathered returns the time to copy K and V of a chunk and its prefix from blocks to tensors, at
// the rate of dense decodes, which read the same blocks. HBM bandwidth bounds it.
func (a *prefillAttention) gathered(s sim.Span) float64 {
	if !a.blocks || s.Prefix == 0 || s.Query <= 0 {
		return 0
	}
	bytes := 2 * float64(s.Prefix+s.Query) * a.kvBytes
	return bytes / math.Min(a.gatherRate, a.peak.hbm)
}

// Seconds implements Cost.
func (a *prefillAttention) Seconds(w *sim.Work) (s float64, beyond bool) {
	s, short := a.of(w.Prefill)
	return s, short > 0
}

// shortest returns the query tokens of the shortest measured row if it has at most one tile, else
// 0.
func (a *prefillAttention) shortest() float64 {
	if q := a.rate.x[0]; q <= queryTile {
		return q
	}
	return 0
}

// of returns the time of all spans, and the shortest query below the measured rows, or 0. Longer
// queries than the rows run at the last rate, which has levelled off there.
func (a *prefillAttention) of(spans []sim.Span) (t float64, short int) {
	prompts := a.prompts(spans)
	launch := 0.0
	for _, s := range spans {
		if s.Query <= 0 {
			continue
		}
		q := max(float64(s.Query), a.shortest())
		span := sim.Span{Query: int(q), Prefix: s.Prefix}
		flops := a.spanFLOPs(span)
		l, _ := a.launch.logLinear(q)
		r, _ := a.rate.power(q)
		sm, cta := a.copies(s)
		floor := a.peak.floor(flops, a.read(span)*a.kvBytes)
		if a.grid != nil {
			before := a.pad * (flops - a.spanFLOPs(sim.Span{Query: span.Query})) / r
			t += max(prompts*a.work(s)+before, a.waves(s), floor)
		} else {
			launch = max(launch, l)
			computes := max(a.pad*flops/r, a.waves(s))
			t += max(math.Hypot(computes, sm), cta-l, floor) // launch hides behind copies
		}
		if a.up != nil {
			t += a.up.beyond(float64(s.Prefix))
		}
		if float64(s.Query) < a.rate.x[0] && (short == 0 || s.Query < short) {
			short = s.Query
		}
	}
	return t + launch, short
}

// work returns the seconds of a chunk among many of the same length, without its prefix.
func (a *prefillAttention) work(s sim.Span) float64 {
	return a.grid.each(float64(s.Query)) * a.share(s.Query)
}

// share returns a chunk's FLOPs relative to the same number of the grid's heads with full
// attention.
func (a *prefillAttention) share(query int) float64 {
	return a.wide * a.keys(sim.Span{Query: query}) / (float64(query) / 2)
}

// prompts returns the grid's time of all chunks divided by the sum of their work. For each length
// in the batch it computes the time as if all work were chunks of that length, and takes the
// longest. More chunks therefore never take less time.
func (a *prefillAttention) prompts(spans []sim.Span) float64 {
	if a.grid == nil {
		return 0
	}
	all, longest := 0.0, 0.0
	for _, s := range spans {
		if s.Query > 0 {
			all += a.work(s)
		}
	}
	for _, s := range spans {
		if s.Query > 0 {
			t := a.grid.seconds(float64(s.Query), all/a.work(s))
			longest = max(longest, a.grid.launch+(t-a.grid.launch)*a.share(s.Query))
		}
	}
	return longest / max(all, math.SmallestNonzeroFloat64)
}
