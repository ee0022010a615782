package calibrate

import (
	"fmt"
	"math"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// sparsePrefill is MInference's prefill: attention by pattern, and the indices that find the keys.
type sparsePrefill struct{}

const (
	probeAShape     = "sparse_prefill.a_shape"
	probeLists      = "sparse_prefill.lists"
	probeLineIndex  = "sparse_prefill.line_index"
	probeBlockIndex = "sparse_prefill.block_index"
	probeGather     = "sparse_prefill.gather"
)

func (sparsePrefill) probes() []Probe {
	const chunk = ", Q, K and V of a prompt token by token; " + gpuTime
	sizes := func(more ...string) []string {
		return append([]string{"query_tokens", "prefix_tokens"}, more...)
	}
	return []Probe{
		{Name: probeAShape, setup: (*gpuRun).setupAShape,
			Means: "attention of one chunk to its first and newest keys" + chunk,
			Axes:  sizes("sink_tokens", "window_tokens"), shaped: true},
		{Name: probeLists, setup: (*gpuRun).setupLists,
			Means: "attention of one chunk to lists of blocks, half of which both rows of a tile " +
				"share, and to gathered columns" + chunk,
			Axes: sizes("blocks", "columns"), shaped: true},
		{Name: probeLineIndex, setup: (*gpuRun).setupLineIndex,
			Means: "vertical and slash lines of one chunk, estimated by its last queries, chosen, and " +
				"merged to lists; slash lines in runs" + chunk,
			Axes: sizes("vertical_lines", "slash_lines"), shaped: true},
		{Name: probeBlockIndex, setup: (*gpuRun).setupBlockIndex,
			Means: "blocks of one chunk, chosen by pooled queries and keys" + chunk,
			Axes:  sizes("blocks"), shaped: true},
		{Name: probeGather, setup: (*gpuRun).setupGather,
			Means: "K and V of a prompt, copied from KV blocks anywhere to tensors; " + gpuTime,
			Axes:  []string{"tokens", "block_tokens"}, shaped: true},
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
		for _, n := range pick(p, []int64{8192, 32768, 131072}, []int64{8192}) {
			for _, block := range pick(p, []int64{16, 32}, []int64{16}) {
				p.add(stageSparsePrefill, point(probeGather, shape, n, block))
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
		add(probeAShape, s[0], s[1])
	}
	for _, s := range [][2]int64{{32, 0}, {100, 0}, {200, 0}, {100, 500}, {30, 1000}} {
		add(probeLists, s[0], s[1])
	}
	for _, s := range [][2]int64{{30, 800}, {500, 700}, {3500, 100}, {1000, 6096}} {
		if s[0]+s[1] <= query+prefix {
			add(probeLineIndex, s[0], s[1])
		}
	}
	for _, top := range []int64{50, 100} {
		add(probeBlockIndex, top)
	}
}

// sparseHead is the pattern of a point.
func sparseHead(at observation) pattern.Head {
	size := func(axis string) int { return int(at.At(axis)) }
	switch at.Probe {
	case probeAShape:
		return pattern.Head{Kind: pattern.AShape, A: size("sink_tokens"), B: size("window_tokens")}
	case probeLineIndex:
		return pattern.Head{Kind: pattern.VerticalSlash, A: size("vertical_lines"),
			B: size("slash_lines")}
	case probeLists:
		if size("columns") > 0 {
			return pattern.Lists(size("blocks"), size("columns"))
		}
	}
	return pattern.Head{Kind: pattern.BlockSparse, A: size("blocks")}
}

// sparseTiles returns the query tiles of all heads.
func sparseTiles(at observation) float64 {
	return math.Ceil(float64(at.At("query_tokens"))/pattern.TileTokens) * float64(at.model.QHeads)
}

// sparseFLOPs returns the FLOPs of blocks and of columns, the last tile whole.
func sparseFLOPs(at observation) (blocks, columns float64) {
	h, q := sparseHead(at), int(sparseTiles(at))/at.model.QHeads*pattern.TileTokens
	each, prefix := float64(4*at.model.HeadDim*at.model.QHeads), int(at.At("prefix_tokens"))
	columns = h.Gathered(q, prefix)
	return each * (h.Pairs(q, prefix) - columns), each * columns
}

// indexWork returns the bytes scanned, the bytes of the lists to choose from, and the sequential
// steps.
func indexWork(at observation) (scanned, listed, steps float64) {
	h, heads := sparseHead(at), float64(at.model.QHeads)
	q, prefix := int(at.At("query_tokens")), int(at.At("prefix_tokens"))
	share := float64(at.model.KVHeads) / heads
	return heads * h.Scanned(q, prefix, at.model.HeadDim, share), heads * h.Listed(q, prefix),
		h.Steps(q, prefix, heads)
}

// fit fits attention, t = launch + ceil(T / CTAs) CTAs (tile + FLOPs / (T rate)), to the points of
// the A-shape and of the lists. Gathered columns have their own rate. It fits each index, t =
// launch + scanned / scan + listed / choice + steps step, and the copy of blocks to tensors.
func (sparsePrefill) fit(s *Samples, p *hw.Profile, from source) (models []model) {
	p.SparsePrefill = nil
	if len(s.of(probeAShape)) == 0 || len(s.of(probeLists)) == 0 || len(s.of(probeLineIndex)) == 0 ||
		len(s.of(probeBlockIndex)) == 0 {
		return nil // samples of an earlier build
	}
	aShape, a := fitSparse(s, p, from, probeAShape, "A-shape")
	lists, l := fitSparse(s, p, from, probeLists, "lists of blocks and columns")
	aShape.Pattern, aShape.Columns = string(pattern.AShape), hw.Figure{}
	blocks, lines := lists, lists
	blocks.Pattern, blocks.Columns = string(pattern.BlockSparse), hw.Figure{}
	lines.Pattern = string(pattern.VerticalSlash)
	models = append(models, a, l,
		fitIndex(s, p, from, &lines, probeLineIndex, "vertical and slash lines"),
		fitIndex(s, p, from, &blocks, probeBlockIndex, "blocks"))
	p.SparsePrefill = []hw.SparseRow{aShape, lines, blocks}
	if gathers := s.of(probeGather); len(gathers) > 0 {
		models = append(models, fitGather(gathers, p, from))
	}
	return models
}

// fitSparse fits attention of a probe.
func fitSparse(s *Samples, p *hw.Profile, from source, probe, what string) (
	row hw.SparseRow, m model) {
	all, sms := s.of(probe), s.sms()
	first := all[0]
	m.fit, m.held = all.split(sameChunk, 2,
		func(at observation) bool { return at.Key() == first.Key() })
	waves := func(at observation) float64 {
		tiles := sparseTiles(at)
		if sms == 0 {
			return tiles
		}
		return math.Ceil(tiles/sms) * sms
	}
	share := func(at observation) float64 { return waves(at) / sparseTiles(at) }
	ofBlocks := func(at observation) float64 { b, _ := sparseFLOPs(at); return b * share(at) }
	ofColumns := func(at observation) float64 { _, c := sparseFLOPs(at); return c * share(at) }
	c := linear(m.fit, one, waves, ofBlocks, ofColumns)
	inverse := func(x float64) float64 { return 1 / math.Max(x, 1e-16) }
	c = refine(m.fit, []float64{math.Max(c[0], 1e-6), c[1], inverse(c[2]), inverse(c[3])},
		[]bound{callBound, blockBound, {1e11, 1e16}, {1e11, 1e16}},
		func(c []float64, at observation) float64 {
			return c[0] + waves(at)*c[1] + ofBlocks(at)/c[2] + ofColumns(at)/c[3]
		})
	dense := p.Prefill[len(p.Prefill)-1].Rate.SI()
	what = "sparse prefill, " + what
	row = hw.SparseRow{
		Launch: from.us(c[0], what),
		Tile:   from.figure(c[1]*1e9, "ns", what+": a tile beyond its FLOPs"),
		Efficiency: from.figure(c[2]/dense, "x",
			what+", over dense attention's rate of long chunks"),
		Columns: from.figure(c[3]/dense, "x", what+": gathered columns, over the same"),
	}
	m.name = probe
	m.draw = picture{xLabel: "FLOPs",
		x: func(at observation) float64 { b, g := sparseFLOPs(at); return b + g }}
	m.price = func(p *hw.Profile, at observation) float64 { a, _ := sparsePrice(p, at); return a }
	return row, m
}

// fitIndex fits the index of a probe.
func fitIndex(s *Samples, p *hw.Profile, from source, row *hw.SparseRow, probe, what string) (
	m model) {
	all := s.of(probe)
	whole := func(at observation) bool { return at.At("prefix_tokens") == 0 }
	shortest := all.where(whole).values("query_tokens")[0]
	m.fit, m.held = all.split(func(at observation) string { return at.Shape }, 4,
		func(at observation) bool { // where launches show
			return whole(at) && at.At("query_tokens") == shortest
		})
	scanned := func(at observation) float64 { b, _, _ := indexWork(at); return b }
	listed := func(at observation) float64 { _, b, _ := indexWork(at); return b }
	steps := func(at observation) float64 { _, _, n := indexWork(at); return n }
	c := linear(m.fit, one, scanned, listed, steps)
	hbm := p.GPU.HBMBandwidth.SI()
	c = refine(m.fit, []float64{math.Max(c[0], 1e-6), 1 / math.Max(c[1], 1/hbm),
		1 / math.Max(c[2], 1e-14), c[3]}, []bound{callBound, {rateBound.low, hbm}, rateBound, blockBound},
		func(c []float64, at observation) float64 {
			return c[0] + scanned(at)/c[1] + listed(at)/c[2] + steps(at)*c[3]
		})
	what = "index of " + what
	row.IndexLaunch = from.us(c[0], what+": its kernels")
	row.Scan = from.gbps(c[1], what+": Q and K that it reads")
	row.Choice = from.gbps(c[2], what+": scores of rows, 4 bytes each")
	row.Step = from.figure(c[3]*1e9, "ns", what+": steps in sequence")
	m.name = probe
	m.draw = picture{x: scanned, xLabel: "bytes of Q and K", rate: scanned}
	m.price = func(p *hw.Profile, at observation) float64 { _, i := sparsePrice(p, at); return i }
	return m
}

// fitGather fits t = launch + bytes read and written / rate.
func fitGather(all data, p *hw.Profile, from source) (m model) {
	bytes := func(at observation) float64 {
		return 2 * float64(at.At("tokens")*at.model.LayerKVBytesPerToken())
	}
	m.fit, m.held = all.split(func(at observation) string { return at.Shape }, 2,
		func(at observation) bool { return at.At("tokens") == all[0].At("tokens") })
	c, hbm := linear(m.fit, one, bytes), p.GPU.HBMBandwidth.SI()
	c = refine(m.fit, []float64{math.Max(c[0], 1e-6), 1 / math.Max(c[1], 1/hbm)},
		[]bound{callBound, {rateBound.low, hbm}},
		func(c []float64, at observation) float64 { return c[0] + bytes(at)/c[1] })
	const what = "K and V copied from KV blocks to tensors"
	p.Paged.GatherLaunch = from.us(c[0], what)
	p.Paged.GatherRate = from.gbps(c[1], what+", bytes read and written")
	m.name, m.draw = probeGather, picture{x: bytes, xLabel: "bytes", rate: bytes}
	m.price = func(p *hw.Profile, at observation) float64 {
		return p.GatherSeconds(at.model, int(at.At("tokens")))
	}
	return m
}

// sameChunk groups points by their chunk.
func sameChunk(at observation) string {
	return fmt.Sprint(at.Shape, at.At("query_tokens"), at.At("prefix_tokens"))
}

// sparsePrice returns the profile's price of a point, in seconds.
func sparsePrice(p *hw.Profile, at observation) (attention, index float64) {
	group := pattern.Group{Head: sparseHead(at), Heads: float64(at.model.QHeads)}
	return p.PrefillSeconds(at.model, []pattern.Group{group}, span(at), 0)
}
