package calibrate

import (
	"fmt"
	"math"
	"strings"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// sparsePrefill is MInference's prefill: attention by pattern, and the indices that find the keys.
type sparsePrefill struct{}

const (
	probeSparseAttention = "sparse_prefill.attention"
	probeSparseIndex     = "sparse_prefill.index"
)

func (sparsePrefill) probes() []Probe {
	const chunk = ", Q, K and V of a prompt token by token; " + gpuTime
	return []Probe{
		{Name: probeSparseAttention, setup: (*gpuRun).setupSparseAttention,
			Means: "attention of one chunk to its first and newest keys, or to lists of blocks, half of " +
				"which both rows of a tile share, and to gathered columns" + chunk,
			Axes: []string{"query_tokens", "prefix_tokens", "sink_tokens", "window_tokens", "blocks",
				"columns"}, shaped: true},
		{Name: probeSparseIndex, setup: (*gpuRun).setupSparseIndex,
			Means: "vertical and slash lines of one chunk, estimated by its last queries, chosen, and " +
				"merged to lists, slash lines in runs; or blocks, chosen by pooled queries and keys" + chunk,
			Axes:   []string{"query_tokens", "prefix_tokens", "vertical_lines", "slash_lines", "blocks"},
			shaped: true},
	}
}

// points are chunks of one shape, and one chunk size of the other.
func (sparsePrefill) points(p *planner) {
	chunks := pick(p, [][2]int64{{512, 32768}, {2048, 0}, {2048, 32768}, {8192, 0}, {8192, 32768},
		{32768, 0}, {65536, 0}, {131072, 0}}, [][2]int64{{2048, 8192}, {8192, 0}, {32768, 0}})
	for i, shape := range []string{shapes[1], shapes[0]} {
		for _, c := range chunks {
			if i == 0 || c[0] == 8192 {
				sparsePoints(p, shape, c[0], c[1])
			}
		}
	}
}

// sparsePoints adds the points of a chunk: sizes of the paper's Table 6 and of its published files.
func sparsePoints(p *planner, shape string, query, prefix int64) {
	add := func(probe string, sizes ...int64) {
		p.add(stageSparsePrefill, point(probe, shape, append([]int64{query, prefix}, sizes...)...))
	}
	for _, s := range [][2]int64{{128, 1024}, {512, 2048}, {1024, 4096}} {
		add(probeSparseAttention, s[0], s[1], 0, 0)
	}
	for _, s := range [][2]int64{{32, 0}, {100, 0}, {200, 0}, {100, 500}, {30, 1000}} {
		add(probeSparseAttention, 0, 0, s[0], s[1])
	}
	for _, s := range [][2]int64{{30, 800}, {500, 700}, {3500, 100}, {1000, 6096}} {
		if s[0]+s[1] <= query+prefix {
			add(probeSparseIndex, s[0], s[1], 0)
		}
	}
	for _, top := range []int64{50, 100} {
		add(probeSparseIndex, 0, 0, top)
	}
}

// sparseHead is the pattern of a point.
func sparseHead(at observation) pattern.Head {
	size := func(axis string) int { return int(at.At(axis)) }
	if at.Probe == probeSparseIndex {
		if size("vertical_lines") > 0 {
			return pattern.Head{Kind: pattern.VerticalSlash, A: size("vertical_lines"),
				B: size("slash_lines")}
		}
	} else if size("sink_tokens") > 0 {
		return pattern.Head{Kind: pattern.AShape, A: size("sink_tokens"), B: size("window_tokens")}
	} else if size("columns") > 0 {
		return pattern.Lists(size("blocks"), size("columns"))
	}
	return pattern.Head{Kind: pattern.BlockSparse, A: size("blocks")}
}

// sparseFLOPs returns the FLOPs of blocks and of columns.
func sparseFLOPs(at observation) (blocks, columns float64) {
	h, s := sparseHead(at), span(at)
	each := float64(4 * at.model.HeadDim * at.model.QHeads)
	columns = h.Gathered(s.Query, s.Prefix)
	return each * (h.Pairs(s.Query, s.Prefix) - columns), each * columns
}

// fit fits attention, t = launch + FLOPs / (efficiency dense rate), to the points of the A-shape
// and of the lists, whose gathered columns have their own efficiency, and each index, t = launch +
// bytes/rate. A pattern pays the launches of its index and of its attention.
func (sparsePrefill) fit(s *Samples, p *hw.Profile, from source) (models []model) {
	p.SparsePrefill = nil
	indices := s.of(probeSparseIndex)
	windows := func(at observation) bool { return at.At("sink_tokens") > 0 }
	lined := func(at observation) bool { return at.At("vertical_lines") > 0 }
	attention := s.of(probeSparseAttention)
	ofShape := attention.where(windows)
	ofLists := attention.where(func(at observation) bool { return !windows(at) })
	ofLines := indices.where(lined)
	ofBlocks := indices.where(func(at observation) bool { return !lined(at) })
	if min(len(ofShape), len(ofLists), len(ofLines), len(ofBlocks)) == 0 {
		return nil // samples of an earlier build
	}
	aShape, a := fitSparse(ofShape, p, from, pattern.AShape, "A-shape")
	lines, l := fitSparse(ofLists, p, from, pattern.VerticalSlash, "lists of blocks and columns")
	blocks := lines
	blocks.Pattern, blocks.Columns = string(pattern.BlockSparse), hw.Figure{}
	models = append(models, a, l, fitIndex(ofLines, p, from, &lines, "vertical and slash lines"),
		fitIndex(ofBlocks, p, from, &blocks, "blocks"))
	p.SparsePrefill = []hw.SparseRow{aShape, lines, blocks}
	for i := range p.SparsePrefill {
		p.SparsePrefill[i].Fused = true
	}
	return models
}

// fitSparse fits attention.
func fitSparse(all data, p *hw.Profile, from source, kind pattern.Kind, what string) (
	row hw.SparseRow, m model) {
	first := all[0]
	m.fit, m.held = all.split(sameChunk, 2,
		func(at observation) bool { return at.Key() == first.Key() })
	// seconds of the FLOPs at the rate of dense attention with the same chunk
	dense := func(at observation) float64 { return p.PrefillRate(at.model, span(at)) }
	ofBlocks := func(at observation) float64 { b, _ := sparseFLOPs(at); return b / dense(at) }
	ofColumns := func(at observation) float64 { _, c := sparseFLOPs(at); return c / dense(at) }
	c := linear(m.fit, one, ofBlocks, ofColumns)
	inverse := func(x float64) float64 { return 1 / math.Max(x, 1e-3) }
	efficiency := bound{1e-3, 10}
	c = refine(m.fit, []float64{math.Max(c[0], 1e-6), inverse(c[1]), inverse(c[2])},
		[]bound{callBound, efficiency, efficiency}, func(c []float64, at observation) float64 {
			return c[0] + ofBlocks(at)/c[1] + ofColumns(at)/c[2]
		})
	what = "sparse prefill, " + what
	row = hw.SparseRow{
		Pattern: string(kind), Launch: from.us(c[0], what),
		Efficiency: from.figure(c[1], "x", what+", over dense attention's rate"),
	}
	m.name = "sparse_prefill." + string(kind)
	if kind == pattern.VerticalSlash {
		m.name = "sparse_prefill.lists"
		row.Columns = from.figure(c[2], "x", what+": gathered columns, over the same")
	}
	m.draw = picture{xLabel: "FLOPs",
		x: func(at observation) float64 { b, g := sparseFLOPs(at); return b + g }}
	launch := c[0] // the row's has its index's, too
	m.price = func(p *hw.Profile, at observation) float64 {
		a, _, l := sparsePrice(p, at)
		return a - l + launch
	}
	return row, m
}

// fitIndex fits the index of a pattern and adds its launch to the row's.
func fitIndex(all data, p *hw.Profile, from source, row *hw.SparseRow, what string) (m model) {
	whole := func(at observation) bool { return at.At("prefix_tokens") == 0 }
	shortest := all.where(whole).values("query_tokens")[0]
	m.fit, m.held = all.split(func(at observation) string { return at.Shape }, 4,
		func(at observation) bool { // where launches show
			return whole(at) && at.At("query_tokens") == shortest
		})
	bytes := func(at observation) float64 {
		s := span(at)
		return float64(at.model.QHeads) *
			sparseHead(at).IndexBytes(s.Query, s.Prefix, at.model.HeadDim)
	}
	c := fitBytes(m.fit, bytes, p.GPU.HBMBandwidth.SI())
	row.Launch = from.us(row.Launch.SI()+c[0], row.Launch.Source[:strings.Index(
		row.Launch.Source, ";")]+"; and of the index of "+what)
	row.Index = from.figure(c[1]/p.GPU.HBMBandwidth.SI(), "x",
		"index of "+what+": bytes of keys and scores, over HBM's rate")
	m.name = "sparse_prefill.index." + row.Pattern
	m.why = "the number of lines and of ranked blocks costs nothing in the model"
	m.draw = picture{x: bytes, xLabel: "bytes of keys and scores", rate: bytes}
	m.price = func(p *hw.Profile, at observation) float64 {
		_, i, _ := sparsePrice(p, at)
		return c[0] + i
	}
	return m
}

// sameChunk groups points by their chunk.
func sameChunk(at observation) string {
	return fmt.Sprint(at.Shape, at.At("query_tokens"), at.At("prefix_tokens"))
}

// sparsePrice returns the profile's price of a point, and the launches in its attention, in
// seconds.
func sparsePrice(p *hw.Profile, at observation) (attention, index, launch float64) {
	head := sparseHead(at)
	group := pattern.Group{Head: head, Heads: float64(at.model.QHeads)}
	attention, index = p.PrefillSeconds(at.model, []pattern.Group{group}, span(at), 0)
	for _, r := range p.SparsePrefill {
		if r.Pattern == string(head.Kind) {
			launch = r.Launch.SI()
		}
	}
	return attention, index, launch
}
