package calibrate

import (
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/reference"
)

// setupSparseIndex prepares the kernels that find vertical and slash lines, or blocks. The last one
// merges drawn lines: slash lines in runs, as in prompts.
func (g *gpuRun) setupSparseIndex(p Point) *work {
	if p.At("vertical_lines") == 0 {
		return g.blockIndex(p)
	}
	prompt, n := g.prompt(p), p.At("query_tokens")+p.At("prefix_tokens")
	heads, vertical, slash := int64(prompt.HeadsQ), p.At("vertical_lines"), p.At("slash_lines")
	e := &cuda.MIEstimateArgs{Prefill: prompt, Stride: n, Vertical: g.poisoned(4 * heads * n),
		Slash: g.poisoned(4 * heads * n)}
	e.Workspace = g.workspace(e)
	tops := [2]*cuda.MITopKArgs{g.top(e.Vertical, heads, n, vertical), g.top(e.Slash, heads, n, slash)}
	drawn := [2][]int32{g.runs(vertical, n, 1), g.runs(slash, n, miRun)}
	rows := heads * (p.At("query_tokens") + miTile - 1) / miTile
	stride := 2 * min(slash, n/miBlock+2)
	l := &cuda.MILinesArgs{
		Vertical: upload(g, slices.Repeat(drawn[0], int(heads))), VerticalStride: vertical,
		Slash: upload(g, slices.Repeat(drawn[1], int(heads))), SlashStride: slash,
		VerticalCount: int32(vertical), SlashCount: int32(slash), HeadsQ: int32(heads),
		QTokens: prompt.QTokens, Prefix: prompt.Prefix, BlockStride: int32(stride),
		ColumnStride: int32(vertical), Blocks: g.poisoned(4 * rows * stride),
		Columns: g.poisoned(4*rows*vertical + 16), Counts: g.poisoned(16 * rows),
	}
	calls := []cuda.Operation{e, tops[0], tops[1], l}
	return &work{calls: calls, verify: func() {
		g.launch(calls...)
		head := g.r.Int64N(heads)
		g.checkTop(tops[0], head)
		g.checkTop(tops[1], head)
		g.checkLines(l, drawn, head)
	}}
}

// top prepares the selection of k of each head's n sums.
func (g *gpuRun) top(scores cuda.Ptr, heads, n, k int64) *cuda.MITopKArgs {
	t := &cuda.MITopKArgs{Scores: scores, List: g.poisoned(4 * heads * k), ScoreStride: n,
		ListStride: k, Rows: int32(heads), N: int32(n), K: int32(k), First: miFirst}
	t.Workspace = g.workspace(t)
	return t
}

// runs draws ascending lines below n: always the first ones, the others in runs of the given
// length.
func (g *gpuRun) runs(count, n, length int64) []int32 {
	list := counted[int32](min(count, miFirst))
	for left := count - int64(len(list)); left > 0; { // evenly over what remains
		at := int64(list[len(list)-1]) + 1
		part := (n - at) * min(length, left) / left
		some := min(length, left)
		at += g.r.Int64N(part - some + 1)
		for i := range some {
			list = append(list, int32(at+i))
		}
		left -= some
	}
	return list
}

// checkTop recomputes the sums of a head and compares the k largest with the list.
func (g *gpuRun) checkTop(a *cuda.MITopKArgs, head int64) {
	scores := download[float32](g, a.Scores+cuda.Ptr(4*head*a.ScoreStride), int64(a.N))
	list := download[int32](g, a.List+cuda.Ptr(4*head*a.ListStride), int64(a.K))
	wide, sum := make([]float64, a.N), 0.0
	for i, s := range scores {
		wide[i] = float64(s)
		sum += wide[i]
	}
	if !(math.Abs(sum-math.Round(sum)) < tolerance*sum && sum > 0.5) {
		g.fail("head %d: the weights of %d rows sum up to %g", head, miBlock, sum)
		return
	}
	want := reference.TopK(wide, int(a.K), int(a.First), 0)
	slices.Sort(want)
	if !slices.Equal(want, list) {
		g.fail("head %d: the largest %d of %d sums differ", head, a.K, a.N)
	}
}

// checkLines merges again the lines of a head's last tile and of one more tile.
func (g *gpuRun) checkLines(a *cuda.MILinesArgs, drawn [2][]int32, head int64) {
	tiles := (int64(a.QTokens) + miTile - 1) / miTile
	for _, tile := range []int64{tiles - 1, g.r.Int64N(tiles)} {
		blocks, columns, counts := reference.LinesOfTile(drawn[0], drawn[1], int(tile), int(a.QTokens),
			int(a.Prefix))
		row := head*tiles + tile
		for _, c := range []struct {
			at     cuda.Ptr
			stride int64
			want   []int32
		}{{a.Blocks, int64(a.BlockStride), blocks}, {a.Columns, int64(a.ColumnStride), columns},
			{a.Counts, 4, counts[:]}} {
			got := download[int32](g, c.at+cuda.Ptr(4*row*c.stride), int64(len(c.want)))
			if !slices.Equal(got, c.want) {
				g.fail("head %d, tile %d: lists differ", head, tile)
			}
		}
	}
}

// blockIndex prepares the pooling of Q and K and the selection of blocks.
func (g *gpuRun) blockIndex(p Point) *work {
	prompt, query, top := g.prompt(p), p.At("query_tokens"), p.At("blocks")
	heads, kv, n := int64(prompt.HeadsQ), int64(prompt.HeadsKV), query+p.At("prefix_tokens")
	rows, blocks := (query+miBlock-1)/miBlock, (n+miBlock-1)/miBlock
	pool := func(x cuda.Ptr, tokens, heads int64) *cuda.MIPoolArgs {
		return &cuda.MIPoolArgs{X: x, TokenStride: prompt.QTokenStride, HeadStride: prompt.QHeadStride,
			Tokens: int32(tokens), Heads: int32(heads),
			Out: g.poisoned(2 * heads * ((tokens + miBlock - 1) / miBlock) * int64(prompt.HeadDim))}
	}
	q, k := pool(prompt.Q, query, heads), pool(prompt.K, n, kv)
	stride := (blocks + miBlock - 1) / miBlock * miBlock
	held := min(miCache, heads*rows*stride) + miBlock*stride
	a := &cuda.MIBlocksArgs{Q: q.Out, K: k.Out, Scores: g.poisoned(4 * held), ScoreCount: held,
		Blocks:  g.poisoned(8 * top * heads * ((rows + 1) / 2)),
		Counts:  g.poisoned(16 * heads * ((rows + 1) / 2)),
		QTokens: prompt.QTokens, Prefix: prompt.Prefix, HeadsQ: prompt.HeadsQ, HeadsKV: prompt.HeadsKV,
		BlockStride: int32(2 * top), Top: int32(top)}
	calls := []cuda.Operation{q, k, a}
	return &work{calls: calls, verify: func() {
		g.launch(calls...)
		g.checkPool(q, g.r.Int64N(heads), rows-1)
		g.checkPool(k, g.r.Int64N(kv), g.r.Int64N(blocks))
		g.checkBlocks(a, g.r.Int64N(heads))
	}}
}

// checkPool recomputes the average of a head's block.
func (g *gpuRun) checkPool(a *cuda.MIPoolArgs, head, block int64) {
	const d = 128
	var x []float64
	for t := block * miBlock; t < min((block+1)*miBlock, int64(a.Tokens)); t++ {
		x = append(x, g.floats(a.X+cuda.Ptr(2*(t*a.TokenStride+head*a.HeadStride)), d)...)
	}
	all := (int64(a.Tokens) + miBlock - 1) / miBlock
	g.near(a.Out+cuda.Ptr(2*d*(head*all+block)), reference.Pool(x, d), "mean of head %d, block %d",
		head, block)
}

// checkBlocks selects the blocks of a head's last row again. The kernel sums in another order, so
// blocks near the minimum selected score may differ.
func (g *gpuRun) checkBlocks(a *cuda.MIBlocksArgs, head int64) {
	const d = 128
	query, n := int64(a.QTokens), int64(a.QTokens)+int64(a.Prefix)
	rows, blocks, tiles := (query+miBlock-1)/miBlock, (n+miBlock-1)/miBlock, (query+miTile-1)/miTile
	q := g.floats(a.Q+cuda.Ptr(2*d*(head*rows+rows-1)), d)
	k := g.floats(a.K+cuda.Ptr(2*d*(head/int64(a.HeadsQ/a.HeadsKV)*blocks)), blocks*d)
	scores, row := reference.Linear(k, q, reference.Exact), head*tiles+tiles-1
	counts := [4]int32(download[int32](g, a.Counts+cuda.Ptr(16*row), 4))
	list := download[int32](g, a.Blocks+cuda.Ptr(4*row*int64(a.BlockStride)), int64(a.BlockStride))
	want := reference.TopBlocks(scores, int(rows-1), int(query), int(a.Prefix), int(a.Top))
	if slices.Min(counts[:]) < 0 || counts[0]+counts[1]+counts[2] > a.BlockStride {
		g.fail("head %d: counts of blocks %v", head, counts)
		return
	}
	l := tileList{blocks: list[:counts[0]+counts[1]+counts[2]], counts: counts}
	got := l.of(int((rows - 1) % 2))
	if len(got) != len(want) {
		g.fail("head %d: %d blocks, want %d", head, len(got), len(want))
		return
	}
	slices.Sort(got)
	if len(slices.Compact(slices.Clone(got))) != len(got) || got[0] < 0 ||
		int64(got[len(got)-1]) >= blocks*miBlock {
		g.fail("head %d: blocks %v", head, got)
		return
	}
	least := func(list []int32) float64 {
		low := math.Inf(1)
		for _, b := range list {
			low = min(low, scores[b/miBlock])
		}
		return low
	}
	if slack := 1e-3 * (slices.Max(scores) - slices.Min(scores)); least(got) < least(want)-slack {
		g.fail("head %d: a block of score %.4g, want %.4g at least", head, least(got), least(want))
	}
}
