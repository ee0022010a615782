package main

import (
	"fmt"
	"math"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// miPattern is a head's pattern and its budget.
type miPattern struct {
	name          string
	first, second int // sink and window; vertical and slash lines; blocks
}

// Budgets of the paper and of its published search for Llama-3-8B.
var miPatterns = []miPattern{
	{"a-shape", 128, 1024}, {"a-shape", 1024, 4096},
	{"block-sparse", 100, 0}, {"block-random", 100, 0},
	{"vertical-slash", 1000, 6096}, {"vertical-slash", 30, 800}, {"vertical-slash", 100, 800},
	{"vertical-slash", 3500, 100}, {"vertical-slash", 500, 700},
}

// miHead is a prefill at one length, with its timed data.
type miHead struct {
	*bench
	chunk
	args  *cuda.PrefillArgs
	dense float64 // ms a head of the fast dense kernel
}

// minference times MInference's patterns, without their indices, and the dense kernels, per head,
// as CSV. speedup is relative to dense, including the index; promise is the ratio of their FLOPs.
func minference(b *bench) {
	fmt.Println("tokens,heads,kv_heads,kernel,budget,ms,index_ms,tflops,blocks,columns,speedup," +
		"promise,share_of_promise,index_share")
	for _, c := range []chunk{
		{10000, 0, 16, 4}, {32768, 0, 32, 32}, {100000, 0, 8, 2}, {300000, 0, 4, 1},
		{500000, 0, 2, 1}, {1000000, 0, 1, 1},
	} {
		h := &miHead{bench: b, chunk: c}
		h.args = h.tensors()
		h.denseRows()
		for _, p := range miPatterns {
			switch p.name {
			case "a-shape":
				h.aShape(p)
			case "block-sparse":
				h.blockSparse(p)
			case "block-random":
				h.blockRandom(p)
			case "vertical-slash":
				h.verticalSlash(p)
			}
		}
		b.free()
	}
}

// tensors returns queries and keys with a common direction, rotated by their positions, so that
// attention decays with distance. All queries attend to one key in 1000. Tokens repeat after 8192.
func (h *miHead) tensors() *cuda.PrefillArgs {
	const period, pairs, slow = 8192, headDim / 2, 48
	heads := h.headsQ + 2*h.headsKV
	n := min(period, h.tokens)
	base := make([]cuda.Half, n*heads*headDim)
	for t := range n {
		heavy := h.r.IntN(1000) == 0
		for i := range heads * headDim {
			head, x := i/headDim, h.r.NormFloat64()
			switch {
			case head < h.headsQ:
				x += 0.8
			case head < h.headsQ+h.headsKV:
				x += 0.8
				if heavy && i%pairs >= slow {
					x += 3
				}
			}
			base[t*heads*headDim+i] = cuda.HalfOf(x)
		}
	}
	row := int64(heads * headDim * 2)
	qkv := h.alloc(int64(h.tokens) * row)
	must(cuda.Upload(h.Session, qkv, base))
	for t := n; t < h.tokens; t += n {
		must(h.Launch(&cuda.MemcpyArgs{Dst: qkv + cuda.Ptr(int64(t)*row), Src: qkv,
			Bytes: int64(min(n, h.tokens-t)) * row}, 0))
	}
	position, frequency := make([]int32, h.tokens), make([]float32, pairs)
	for i := range position {
		position[i] = int32(i)
	}
	for i := range frequency {
		frequency[i] = float32(math.Pow(500000, -float64(i)/pairs))
	}
	must(h.Launch(&cuda.RopeArgs{QKV: qkv, Position: upload(h.bench, position),
		InvFreq: upload(h.bench, frequency), Tokens: int32(h.tokens), HeadsQ: int32(h.headsQ),
		HeadsKV: int32(h.headsKV), HeadDim: headDim, BlockTokens: blockTokens}, 0))
	rowQ := int64(heads * headDim)
	k := qkv + cuda.Ptr(h.headsQ*headDim*2)
	return &cuda.PrefillArgs{Q: qkv, K: k, V: k + cuda.Ptr(h.headsKV*headDim*2),
		Out:          h.alloc(int64(h.tokens*h.headsQ*headDim) * 2),
		QTokenStride: rowQ, QHeadStride: headDim, KTokenStride: rowQ, KHeadStride: headDim,
		VTokenStride: rowQ, VHeadStride: headDim, OutTokenStride: int64(h.headsQ * headDim),
		OutHeadStride: headDim, QTokens: int32(h.tokens), HeadsQ: int32(h.headsQ),
		HeadsKV: int32(h.headsKV), HeadDim: headDim, Scale: float32(1 / math.Sqrt(headDim))}
}

// line prints one row of the table. The last two columns are for patterns.
func (h *miHead) line(kernel, budget string, attend, index, flops, blocks, columns float64) {
	rate, ms := flops/attend/1e9, attend+index
	fmt.Printf("%d,%d,%d,%s,%s,%.4f,%.4f,%.0f,%.1f,%.1f,%.3f,%.3f,%.3f,%.3f\n", h.tokens, h.headsQ,
		h.headsKV, kernel, budget, ms, index, rate, blocks, columns, h.dense/ms,
		h.denseFLOPs()/flops, h.dense/ms/(h.denseFLOPs()/flops), index/ms)
}

// denseFLOPs returns the FLOPs of a head.
func (h *miHead) denseFLOPs() float64 { return 2 * headDim * float64(h.tokens) * float64(h.tokens) }

// perHead returns the time of the calls per head.
func (h *miHead) perHead(calls ...cuda.Operation) float64 {
	repeats := 7
	if h.tokens >= 300000 {
		repeats = 3
	}
	return h.time(repeats, calls...).median / float64(h.headsQ)
}

func (h *miHead) denseRows() {
	a := &cuda.MIAttendArgs{Prefill: *h.args}
	name := "dense"
	if yes := got(h.OnHopper(a)); !yes {
		name = "dense-mma"
	}
	h.dense = h.perHead(a)
	h.line(name, "", h.dense, 0, h.denseFLOPs(), 0, 0)
}

func (h *miHead) aShape(p miPattern) {
	a := &cuda.MIAttendArgs{Prefill: *h.args, Sink: int32(p.first), Window: int32(p.second)}
	flops := 4 * headDim * float64(h.tokens) * float64(p.first+p.second)
	h.line(p.name, fmt.Sprintf("%d+%d", p.first, p.second), h.perHead(a), 0, flops, 0, 0)
}

// area returns the blocks and columns in the lists, per row of 64 queries.
func (h *miHead) area(counts cuda.Ptr) (blocks, columns float64) {
	tiles := (h.tokens + 127) / 128
	n := make([]int32, h.headsQ*tiles*4)
	must(h.DeviceSync(), cuda.Download(h.Session, n, counts))
	for i := 0; i < len(n); i += 4 {
		blocks += float64(2*n[i] + n[i+1] + n[i+2])
		columns += float64(2 * n[i+3])
	}
	rows := float64(h.headsQ) * float64((h.tokens+63)/64)
	return blocks / rows, columns / rows
}

func (h *miHead) lists(blockStride, columnStride int) *cuda.MIAttendArgs {
	rows := int64(h.headsQ) * int64((h.tokens+127)/128)
	return &cuda.MIAttendArgs{Prefill: *h.args, BlockStride: int32(blockStride),
		ColumnStride: int32(columnStride), Blocks: h.alloc(rows * int64(blockStride) * 4),
		Columns: h.alloc(rows*int64(columnStride)*4 + 16), Counts: h.alloc(rows * 16)}
}

// sparse times index and attention, each by itself, then prints.
func (h *miHead) sparse(p miPattern, budget string, a *cuda.MIAttendArgs, indexFLOPs float64,
	index ...cuda.Operation) {
	built := h.perHead(index...)
	blocks, columns := h.area(a.Counts)
	flops := 4*headDim*float64(h.tokens)*(64*blocks+columns) + indexFLOPs
	h.line(p.name, budget, h.perHead(a), built, flops, blocks, columns)
	for _, q := range []cuda.Ptr{a.Blocks, a.Columns, a.Counts} {
		h.release(q)
	}
}

func (h *miHead) blockSparse(p miPattern) {
	rows := (h.tokens + 63) / 64
	top := min(p.first, rows)
	a := h.lists(2*top, 0)
	q, k := h.alloc(int64(h.headsQ*rows*headDim)*2), h.alloc(int64(h.headsKV*rows*headDim)*2)
	held := min(32<<20, h.headsQ*rows*(rows+63)/64*64)
	scores := h.alloc(int64(held)*4 + 64<<10)
	pool := func(x, out cuda.Ptr, heads int) cuda.Operation {
		return &cuda.MIPoolArgs{X: x, Out: out, TokenStride: h.args.QTokenStride, HeadStride: headDim,
			Tokens: int32(h.tokens), Heads: int32(heads)}
	}
	choose := &cuda.MIBlocksArgs{Q: q, K: k, Blocks: a.Blocks, Counts: a.Counts, Scores: scores,
		ScoreCount: int64(held) + 16<<10, QTokens: int32(h.tokens), HeadsQ: int32(h.headsQ),
		HeadsKV: int32(h.headsKV), BlockStride: a.BlockStride, Top: int32(top)}
	pools := []cuda.Operation{pool(h.args.Q, q, h.headsQ), pool(h.args.K, k, h.headsKV)}
	fmt.Printf("# pooling %.4f ms, choice %.4f ms a head\n", h.perHead(pools...), h.perHead(choose))
	h.sparse(p, fmt.Sprint(top), a, 0, append(pools, choose)...)
}

// blockRandom attends to random blocks for each row of queries: adjacent rows share no block, and
// at long contexts every block comes from HBM. It builds no index.
func (h *miHead) blockRandom(p miPattern) {
	rows := (h.tokens + 63) / 64
	a := h.lists(2*min(p.first, rows), 0)
	stride := int(a.BlockStride)
	tiles := (rows + 1) / 2
	list, counts := make([]int32, h.headsQ*tiles*stride), make([]int32, h.headsQ*tiles*4)
	for tile := range h.headsQ * tiles {
		to := list[tile*stride:]
		for half := range 2 {
			row := tile%tiles*2 + half
			if row >= rows {
				break
			}
			n := min(row+1, p.first)
			for i := range n { // one of each n-th of the blocks
				to[i] = int32((i*(row+1)/n + h.r.IntN(max(1, (row+1)/n))) * 64)
			}
			to, counts[tile*4+1+half] = to[n:], int32(n)
		}
	}
	must(cuda.Upload(h.Session, a.Blocks, list), cuda.Upload(h.Session, a.Counts, counts))
	blocks, _ := h.area(a.Counts)
	h.line(p.name, fmt.Sprint(p.first), h.perHead(a), 0,
		4*headDim*float64(h.tokens)*64*blocks, blocks, 0)
}

func (h *miHead) verticalSlash(p miPattern) {
	kv, ks := min(p.first, h.tokens), min(p.second, h.tokens)
	a := h.lists(2*min(ks, h.tokens/64+2), kv)
	n := int64(h.tokens)
	estimate := &cuda.MIEstimateArgs{Prefill: *h.args, Stride: n,
		Vertical: h.alloc(int64(h.headsQ) * n * 4), Slash: h.alloc(int64(h.headsQ) * n * 4)}
	estimate.Workspace = h.workspace(estimate)
	top := func(scores cuda.Ptr, k int) *cuda.MITopKArgs {
		t := &cuda.MITopKArgs{Scores: scores, List: h.alloc(int64(h.headsQ*k) * 4), ScoreStride: n,
			ListStride: int64(k), Rows: int32(h.headsQ), N: int32(n), K: int32(k), First: pattern.KeptLines}
		t.Workspace = h.workspace(t)
		return t
	}
	vertical, slash := top(estimate.Vertical, kv), top(estimate.Slash, ks)
	lines := &cuda.MILinesArgs{Vertical: vertical.List, Slash: slash.List, Blocks: a.Blocks,
		Columns: a.Columns, Counts: a.Counts, VerticalStride: int64(kv), SlashStride: int64(ks),
		VerticalCount: int32(kv), SlashCount: int32(ks), HeadsQ: int32(h.headsQ), QTokens: int32(n),
		BlockStride: a.BlockStride, ColumnStride: a.ColumnStride}
	if p.first == 1000 {
		fmt.Printf("# estimate %.4f ms, top-k %.4f ms, lines %.4f ms a head\n", h.perHead(estimate),
			h.perHead(vertical, slash), h.perHead(lines))
	}
	h.sparse(p, fmt.Sprintf("%d+%d", p.first, p.second), a, 2*64*headDim*float64(h.tokens), estimate,
		vertical, slash, lines)
}
