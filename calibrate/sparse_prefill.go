package calibrate

import (
	"fmt"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

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

// fitSparsePrefill fits attention to the points of the A-shape and of the lists,
//
//	t = launch + FLOPs / (efficiency dense rate) + tiles tile
//
// gathered columns with an efficiency of their own and tiles only of the A-shape, and each index,
// t = launch + bytes/rate + tiles tile. A pattern pays the launches of its index and of its
// attention.
func fitSparsePrefill(s *Samples, p *hw.Profile, from source) (models []model) {
	p.SparsePrefill = nil
	windows := func(at observation) bool { return at.At("sink_tokens") > 0 }
	lined := func(at observation) bool { return at.At("vertical_lines") > 0 }
	shapedPoints, listedPoints := s.of(probeSparseAttention).part(windows)
	linePoints, blockPoints := s.of(probeSparseIndex).part(lined)
	aShape := hw.SparseRow{Pattern: string(pattern.AShape)}
	lines := hw.SparseRow{Pattern: string(pattern.VerticalSlash)}
	blocks := hw.SparseRow{Pattern: string(pattern.BlockSparse)}
	// seconds of the FLOPs at the rate of dense attention with the same chunk
	dense := func(at observation) float64 { return cost.PrefillRate(p, at.model, span(at)) }
	ofBlocks := func(at observation) float64 { b, _ := sparseFLOPs(at); return b / dense(at) }
	ofColumns := func(at observation) float64 { _, c := sparseFLOPs(at); return c / dense(at) }
	indexTime := func(at observation) float64 {
		sp := span(at)
		return float64(at.model.QHeads) / p.GPU.HBMBandwidth.SI() *
			sparseHead(at).IndexBytes(sp.Query, sp.Prefix, at.model.HeadDim)
	}
	var listLaunch, lineLaunch, blockLaunch hw.Figure // attention to lists, indices
	const shaped, listed = "sparse prefill, A-shape", "sparse prefill, lists of blocks and columns"
	const ofLines, ofRanks = "index of vertical and slash lines", "index of blocks"
	const noTile = 1e-14 // seconds: less is nothing
	const bytes = ": bytes of keys and scores, over HBM's rate"
	for _, l := range []struct {
		law
		launch *hw.Figure
	}{
		{law{model: "sparse_prefill.a-shape", points: shapedPoints, terms: []term{
			launch(&aShape.Launch, shaped),
			share(ofBlocks, &aShape.Efficiency, 10, shaped+", over dense attention's rate"),
			each(sparseTiles, &aShape.Tile, noTile, shaped+": a tile of queries")}}, &aShape.Launch},
		{law{model: "sparse_prefill.lists", points: listedPoints, terms: []term{
			launch(&listLaunch, listed),
			share(ofBlocks, &lines.Efficiency, 10, listed+", over dense attention's rate"),
			share(ofColumns, &lines.Columns, 10, listed+": gathered columns, over the same")}},
			&listLaunch},
		{law{model: "sparse_prefill.index.vertical-slash", points: linePoints, terms: []term{
			launch(&lineLaunch, ofLines), share(indexTime, &lines.Index, 1, ofLines+bytes),
			each(sparseTiles, &lines.Tile, noTile, ofLines+": a line of a tile of queries")}}, &lineLaunch},
		{law{model: "sparse_prefill.index.block-sparse", points: blockPoints,
			terms: []term{launch(&blockLaunch, ofRanks), share(indexTime, &blocks.Index, 1, ofRanks+bytes),
				each(sparseTiles, &blocks.Tile, noTile, ofRanks+": a tile of queries")}}, &blockLaunch},
	} {
		if len(l.points) == 0 {
			return nil // samples of an earlier build
		}
		l.price = func(p *hw.Profile, at observation) float64 {
			return sparsePrice(p, at) + l.launch.SI()
		}
		first := l.points[0]
		l.group, l.fewest = sameChunk, 2
		l.keep = func(at observation) bool { return at.Key() == first.Key() }
		if first.Probe == probeSparseIndex {
			whole := func(at observation) bool { return at.At("prefix_tokens") == 0 }
			shortest := l.points.where(whole).values("query_tokens")[0]
			l.group, l.fewest = nil, 4
			l.keep = func(at observation) bool { // where launches show
				return whole(at) && at.At("query_tokens") == shortest
			}
		}
		models = append(models, l.fit(from))
	}
	blocks.Efficiency = lines.Efficiency
	lines.Launch = from.us(listLaunch.SI()+lineLaunch.SI(), listed+"; and of the "+ofLines)
	blocks.Launch = from.us(listLaunch.SI()+blockLaunch.SI(), listed+"; and of the "+ofRanks)
	p.SparsePrefill = []hw.SparseRow{aShape, lines, blocks}
	for i := range p.SparsePrefill {
		p.SparsePrefill[i].Fused = true
	}
	return models
}

// sameChunk groups points by their chunk.
func sameChunk(at observation) string {
	return fmt.Sprint(at.Shape, at.At("query_tokens"), at.At("prefix_tokens"))
}

// sparseTiles returns the tiles of all heads (pattern.Head.Tiles).
func sparseTiles(at observation) float64 {
	s := span(at)
	return float64(at.model.QHeads) * sparseHead(at).Tiles(s.Query, s.Prefix)
}

// sparsePrice returns the profile's price of a point's attention or index without launches, in
// seconds.
func sparsePrice(p *hw.Profile, at observation) float64 {
	head := sparseHead(at)
	group := pattern.Group{Head: head, Heads: float64(at.model.QHeads)}
	attention, index := cost.PrefillSeconds(p, at.model, []pattern.Group{group}, span(at), 0)
	if at.Probe == probeSparseIndex {
		return index
	}
	for _, r := range p.SparsePrefill {
		if r.Pattern == string(head.Kind) {
			attention -= r.Launch.SI()
		}
	}
	return attention
}
