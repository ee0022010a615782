package calibrate

import (
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/cuda"
)

const (
	miBlock = 64  // keys of a block, queries of a row of blocks
	miTile  = 128 // queries of a tile
	miRun   = 70  // diagonals that are slash lines together
	miFirst = 30  // lines that are always chosen
	miCache = 32 << 20
)

// prompt prepares a prompt's Q, K and V in the live loop's layout, token by token, and the
// attention of its last `query` tokens.
func (g *gpuRun) prompt(p Point) cuda.PrefillArgs {
	m, query, prefix := g.model(p.Shape), p.At("query_tokens"), p.At("prefix_tokens")
	hq, hk, d := int64(m.QHeads), int64(m.KVHeads), int64(m.HeadDim)
	row := (hq + 2*hk) * d
	qkv := g.random((query + prefix) * row)
	k := qkv + cuda.Ptr(2*hq*d)
	return cuda.PrefillArgs{
		Q: qkv + cuda.Ptr(2*prefix*row), K: k, V: k + cuda.Ptr(2*hk*d),
		Out:          g.poisoned(2 * query * hq * d),
		QTokenStride: row, QHeadStride: d, KTokenStride: row, KHeadStride: d, VTokenStride: row,
		VHeadStride: d, OutTokenStride: hq * d, OutHeadStride: d, QTokens: int32(query),
		Prefix: int32(prefix), HeadsQ: int32(hq), HeadsKV: int32(hk), HeadDim: int32(d),
		Scale: float32(1 / math.Sqrt(float64(d))),
	}
}

// setupSparseAttention prepares attention to the first and newest keys, or to lists.
func (g *gpuRun) setupSparseAttention(p Point) *work {
	if p.At("sink_tokens") == 0 {
		return g.lists(p)
	}
	a := &cuda.MIAttendArgs{Prefill: g.prompt(p), Sink: int32(p.At("sink_tokens")),
		Window: int32(p.At("window_tokens"))}
	seen := func(token int64) (keys []int64) {
		position := int64(a.Prefill.Prefix) + token
		for key := range position + 1 {
			if key < int64(a.Sink) || position-key < int64(a.Window) {
				keys = append(keys, key)
			}
		}
		return keys
	}
	return g.sparse(a, seen)
}

// sparse prepares a sparse attention with a check that recomputes some rows of some heads.
func (g *gpuRun) sparse(a *cuda.MIAttendArgs, seen func(token int64) []int64) *work {
	return &work{calls: []cuda.Operation{a}, verify: func() {
		g.launch(a)
		last := int64(a.Prefill.QTokens) - 1
		for _, token := range []int64{last, min(last, g.r.Int64N(miTile))} {
			g.checkRow(&a.Prefill, seen(token), g.r.Int64N(int64(a.Prefill.HeadsQ)), token)
		}
	}}
}

// checkRow recomputes a token's row of a head over the keys that it attends to.
func (g *gpuRun) checkRow(a *cuda.PrefillArgs, keys []int64, head, token int64) {
	d, kv := int64(a.HeadDim), head/int64(a.HeadsQ/a.HeadsKV)
	g.attentionOf(a, head, token, func(add func(k, v []float64)) {
		for _, key := range keys {
			add(g.floats(a.K+cuda.Ptr(2*(key*a.KTokenStride+kv*a.KHeadStride)), d),
				g.floats(a.V+cuda.Ptr(2*(key*a.VTokenStride+kv*a.VHeadStride)), d))
		}
	})
}

// lists prepares lists with the point's numbers of blocks and columns for every row, the same
// for all heads.
func (g *gpuRun) lists(p Point) *work {
	a := &cuda.MIAttendArgs{Prefill: g.prompt(p), BlockStride: int32(2 * p.At("blocks")),
		ColumnStride: int32(p.At("columns"))}
	lists := make([]tileList, (int64(a.Prefill.QTokens)+miTile-1)/miTile)
	var blocks, columns, counts []int32
	for i := range lists {
		lists[i] = g.drawList(a, i, int(p.At("blocks")), int(p.At("columns")))
		l := &lists[i]
		blocks = append(blocks, l.blocks...)
		blocks = append(blocks, make([]int32, int(a.BlockStride)-len(l.blocks))...)
		columns = append(columns, l.columns...)
		columns = append(columns, make([]int32, int(a.ColumnStride)-len(l.columns))...)
		counts = append(counts, l.counts[:]...)
	}
	heads := int(a.Prefill.HeadsQ)
	a.Blocks = upload(g, slices.Repeat(blocks, heads))
	a.Columns = upload(g, append(slices.Repeat(columns, heads), 0, 0, 0, 0))
	a.Counts = upload(g, slices.Repeat(counts, heads))
	return g.sparse(a, func(token int64) (keys []int64) {
		l, position := &lists[token/miTile], int64(a.Prefill.Prefix)+token
		for _, start := range l.of(int(token / miBlock % 2)) {
			for key := int64(start); key < min(int64(start)+miBlock, position+1); key++ {
				keys = append(keys, key)
			}
		}
		for _, key := range l.columns {
			keys = append(keys, int64(key))
		}
		return keys
	})
}

// tileList holds the lists of a tile of queries in the layout of cuda.MIAttendArgs.
type tileList struct {
	blocks, columns []int32
	counts          [4]int32
}

// of returns the blocks of a half of the tile.
func (l *tileList) of(half int) []int32 {
	both, first := int(l.counts[0]), int(l.counts[0]+l.counts[1])
	if half == 0 {
		return l.blocks[:first]
	}
	return slices.Concat(l.blocks[:both], l.blocks[first:])
}

// drawList draws blocks for both halves of a tile, which share half of their blocks, and columns
// among the earlier keys outside these blocks. If there are too few, it takes all.
func (g *gpuRun) drawList(a *cuda.MIAttendArgs, tile, blocks, columns int) (l tileList) {
	from := int(a.Prefill.Prefix) + tile*miTile
	seen := (min(from+miBlock, int(a.Prefill.Prefix+a.Prefill.QTokens)) + miBlock - 1) / miBlock
	var parts [3][]int32 // of both halves, the first, the second
	taken := make([]bool, max(seen, from/miBlock))
	if n := blocks + blocks/2; seen <= n {
		for i := range min(seen, blocks) {
			taken[i], parts[0] = true, append(parts[0], int32(i*miBlock))
		}
	} else {
		for i := range n { // one of each n-th
			at := i*seen/n + g.r.IntN((i+1)*seen/n-i*seen/n)
			taken[at], parts[i%3] = true, append(parts[i%3], int32(at*miBlock))
		}
	}
	var free []int
	for i := range from / miBlock {
		if !taken[i] {
			free = append(free, i)
		}
	}
	n := min(columns, len(free)*miBlock)
	for i := range n {
		all := len(free) * miBlock
		at := i*all/n + g.r.IntN((i+1)*all/n-i*all/n)
		l.columns = append(l.columns, int32(free[at/miBlock]*miBlock+at%miBlock))
	}
	l.blocks = slices.Concat(parts[0], parts[1], parts[2])
	l.counts = [4]int32{int32(len(parts[0])), int32(len(parts[1])), int32(len(parts[2])), int32(n)}
	return l
}
