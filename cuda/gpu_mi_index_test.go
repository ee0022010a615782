//go:build gpu

package cuda

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda/reference"
)

// nearly compares values that are sums of weights: each within limit of the largest.
func (g *gpu) nearly(what string, got []float32, want []float64, limit float64) {
	g.t.Helper()
	size := slices.Max(want)
	for i := range want {
		if !(math.Abs(float64(got[i])-want[i]) <= limit*size) {
			g.t.Errorf("%s: value %d is %g, want %g", what, i, got[i], want[i])
			return
		}
	}
}

func TestGPUMIEstimate(t *testing.T) {
	onGPU(t, func(g *gpu) {
		for _, c := range miCases() {
			c.fill(g)
			total, heads := c.tokens+c.prefix, c.group*c.kvHeads
			a := MIEstimateArgs{Prefill: c.args, Stride: int64(total + 3)}
			n := heads * (total + 3)
			a.Vertical, a.Slash = g.device(int64(n*4)), g.device(int64(n*4))
			bytes, err := g.Workspace(&a)
			g.must(err)
			a.Workspace = g.device(bytes)
			g.must(g.Launch(&a, 0))
			vertical, slash := download[float32](g, a.Vertical, n), download[float32](g, a.Slash, n)
			p := reference.Prefill{
				Shape: reference.Shape{Batch: 1, HeadsQ: heads, HeadsKV: c.kvHeads, Dim: 128},
				Q:     c.q, K: c.k, V: c.v, QTokens: c.tokens, Prefix: c.prefix, Scale: 1 / math.Sqrt(128)}
			for h := range heads {
				v, s := p.LineWeights(h)
				g.nearly(fmt.Sprintf("columns of head %d, %v", h, &c), vertical[h*(total+3):], v, 2e-3)
				g.nearly(fmt.Sprintf("diagonals of head %d, %v", h, &c), slash[h*(total+3):], s, 2e-3)
			}
		}
	})
}

func TestGPUMITopK(t *testing.T) {
	onGPU(t, func(g *gpu) {
		for _, c := range []struct{ rows, n, k, first, values int }{
			{1, 1, 1, 0, 0}, {3, 100, 7, 2, 0}, {2, 5000, 4999, 30, 0}, {2, 5000, 5000, 0, 3},
			{2, 4097, 1, 0, 0},
			{1, 9000, 3000, 30, 4}, {1, 9000, 20, 30, 0}, {2, 200001, 6096, 30, 0}, {1, 300000, 3500, 0, 50},
		} {
			stride := c.n + 5
			scores := make([]float32, c.rows*stride)
			for i := range scores {
				scores[i] = float32(g.r.NormFloat64() * math.Exp(3*g.r.NormFloat64()))
				if c.values > 0 { // many ties, -inf and both zeros among them
					scores[i] = []float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(-1)),
						1}[g.r.IntN(4)] * float32(g.r.IntN(c.values)+1)
				}
			}
			a := MITopKArgs{Scores: upload(g, scores), List: g.device(int64(c.rows*(c.k+2)) * 4),
				ScoreStride: int64(stride), ListStride: int64(c.k + 2),
				Rows: int32(c.rows), N: int32(c.n), K: int32(c.k), First: int32(c.first)}
			bytes, err := g.Workspace(&a)
			g.must(err)
			a.Workspace = g.device(bytes)
			g.must(g.Launch(&a, 0))
			got := download[int32](g, a.List, c.rows*(c.k+2))
			for row := range c.rows {
				x := make([]float64, c.n)
				for i := range x {
					x[i] = float64(scores[row*stride+i])
				}
				want := reference.TopK(x, c.k, c.first, 0)
				slices.Sort(want)
				if !slices.Equal(got[row*(c.k+2):][:c.k], want) {
					t.Errorf("%+v: row %d differs", c, row)
				}
			}
		}
	})
}

// lines draws ascending lines, the first 30 always, others in clusters.
func lines(r *rand.Rand, n, total int) []int32 {
	list := make([]int32, 0, n)
	for len(list) < n {
		at := r.IntN(total)
		for i := 0; i < 1+r.IntN(90) && at < total && len(list) < n; i++ {
			list = append(list, int32(at))
			at += 1 + r.IntN(3)
		}
	}
	for i := range min(30, n, total) {
		list[i] = int32(i)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func TestGPUMILines(t *testing.T) {
	onGPU(t, func(g *gpu) {
		for _, c := range miCases() {
			c.fill(g)
			total := c.tokens + c.prefix
			for _, k := range [][2]int{{0, 1}, {1, 3}, {40, 100}, {1000, 700}, {20000, 20000}} {
				vertical, slash := lines(g.r, k[0], total), lines(g.r, k[1], total)
				a, l := g.launchLines(&c, vertical, slash)
				for row := range c.group * c.kvHeads * c.tiles() {
					blocks, columns, counts := reference.LinesOfTile(vertical, slash, row%c.tiles(),
						c.tokens, c.prefix)
					if !slices.Equal(l.counts[row*4:][:4], counts[:]) ||
						!slices.Equal(l.blocks[row*l.blockStride:][:len(blocks)], blocks) ||
						!slices.Equal(l.columns[row*l.columnStride:][:len(columns)], columns) {
						t.Fatalf("%v, %d vertical and %d slash lines, row %d: counts %v, want %v", &c, len(vertical),
							len(slash), row, l.counts[row*4:][:4], counts)
					}
				}
				if k[0] < 20000 {
					c.compare(g, fmt.Sprintf("%v, %d vertical and %d slash lines", &c, len(vertical), len(slash)),
						a, c.sees(l))
				}
			}
		}
	})
}

// launchLines gives every head the same lines.
func (g *gpu) launchLines(c *miCase, vertical, slash []int32) (*MIAttendArgs, miLists) {
	heads := c.group * c.kvHeads
	most := min(len(slash), (c.tokens+c.prefix)/64+2)
	l := miLists{blockStride: 2 * most, columnStride: len(vertical) + 1}
	rows := heads * c.tiles()
	a := MILinesArgs{Vertical: upload(g, slices.Repeat(vertical, heads)),
		Slash:   upload(g, slices.Repeat(slash, heads)),
		Blocks:  g.device(int64(rows*l.blockStride) * 4),
		Columns: g.device(int64(rows*l.columnStride) * 4), Counts: g.device(int64(rows) * 16),
		VerticalStride: int64(len(vertical)), SlashStride: int64(len(slash)),
		VerticalCount: int32(len(vertical)), SlashCount: int32(len(slash)),
		HeadsQ: int32(heads), QTokens: int32(c.tokens), Prefix: int32(c.prefix),
		BlockStride: int32(l.blockStride), ColumnStride: int32(l.columnStride)}
	g.must(g.Launch(&a, 0))
	l.blocks, l.columns = download[int32](g, a.Blocks, rows*l.blockStride),
		download[int32](g, a.Columns, rows*l.columnStride)
	l.counts = download[int32](g, a.Counts, rows*4)
	return &MIAttendArgs{Prefill: c.args, BlockStride: a.BlockStride, ColumnStride: a.ColumnStride,
		Blocks: a.Blocks, Columns: a.Columns, Counts: a.Counts}, l
}

func TestGPUMIBlocks(t *testing.T) {
	onGPU(t, func(g *gpu) {
		for _, c := range miCases() {
			c.fill(g)
			const dim = 128
			heads, total := c.group*c.kvHeads, c.tokens+c.prefix
			rows, blocks := (c.tokens+63)/64, (total+63)/64
			q, k := g.device(int64(heads*rows*dim)*2), g.device(int64(c.kvHeads*blocks*dim)*2)
			g.must(g.Launch(&MIPoolArgs{X: c.args.Q, Out: q, TokenStride: c.args.QTokenStride,
				HeadStride: dim, Tokens: int32(c.tokens), Heads: int32(heads)}, 0))
			g.must(g.Launch(&MIPoolArgs{X: c.args.K, Out: k, TokenStride: c.args.KTokenStride,
				HeadStride: dim, Tokens: int32(total), Heads: int32(c.kvHeads)}, 0))
			pooled := g.pooled(fmt.Sprintf("queries of %v", &c), q, c.q, heads, c.tokens)
			pooledK := g.pooled(fmt.Sprintf("keys of %v", &c), k, c.k, c.kvHeads, total)
			stride := (blocks + 63) / 64 * 64
			for _, top := range []int{1, 3, 20, 100} {
				for _, held := range []int{64, heads * rows} { // rows of scores in the scratch memory
					held = max(held, min(rows, 64))
					l := miLists{blockStride: 2*top + 1}
					n := heads * c.tiles()
					a := MIBlocksArgs{Q: q, K: k, Blocks: g.device(int64(n*l.blockStride) * 4),
						Counts: g.device(int64(n) * 16), Scores: g.device(int64(held*stride) * 4),
						ScoreCount: int64(held * stride), QTokens: int32(c.tokens), Prefix: int32(c.prefix),
						HeadsQ: int32(heads), HeadsKV: int32(c.kvHeads),
						BlockStride: int32(l.blockStride), Top: int32(top)}
					g.must(g.Launch(&a, 0))
					l.blocks, l.counts = download[int32](g, a.Blocks, n*l.blockStride),
						download[int32](g, a.Counts, n*4)
					if held == heads*rows { // the scores are all there
						g.chosen(&c, l, download[float32](g, a.Scores, held*stride), stride, pooled, pooledK, top)
					}
					if top == 3 || top == 20 {
						c.compare(g, fmt.Sprintf("%v, top %d", &c, top),
							&MIAttendArgs{Prefill: c.args, BlockStride: a.BlockStride, Blocks: a.Blocks,
								Columns: a.Blocks,
								Counts:  a.Counts}, c.sees(l))
					}
				}
			}
		}
	})
}

// pooled checks pooled values against the reference, and returns the GPU's values.
func (g *gpu) pooled(what string, p Ptr, x []float64, heads, tokens int) []float64 {
	const dim = 128
	rows := (tokens + 63) / 64
	got := Floats(download[Half](g, p, heads*rows*dim))
	for h := range heads {
		var of []float64
		for t := range tokens {
			of = append(of, x[(t*heads+h)*dim:][:dim]...)
		}
		g.near(what, got[h*rows*dim:][:rows*dim], reference.Pool(of, dim), dim, 1e-3, 2e-3)
	}
	return got
}

// chosen checks scores against pooled values, and the lists against the scores, exactly.
func (g *gpu) chosen(c *miCase, l miLists, scores []float32, stride int, q, k []float64, top int) {
	const dim = 128
	rows, blocks := (c.tokens+63)/64, (c.tokens+c.prefix+63)/64
	for h := range c.group * c.kvHeads {
		lists := make([]reference.RowLists, 2*c.tiles())
		for row := range rows {
			own := make([]float64, blocks)
			for b := range (c.prefix+min((row+1)*64, c.tokens)-1)/64 + 1 {
				own[b] = float64(scores[(h*rows+row)*stride+b])
				want := 0.0
				for d := range dim {
					want += q[(h*rows+row)*dim+d] * k[(h/c.group*blocks+b)*dim+d]
				}
				if math.Abs(own[b]-want) > 1e-3*(1+math.Abs(want)) {
					g.t.Fatalf("%v, head %d, row %d, block %d: score %g, want %g", c, h, row, b, own[b], want)
				}
			}
			lists[row].Blocks = reference.TopBlocks(own, row, c.tokens, c.prefix, top)
		}
		for tile := range c.tiles() {
			at := h*c.tiles() + tile
			want, _, counts := reference.TileLists(lists[2*tile], lists[2*tile+1])
			if !slices.Equal(l.counts[at*4:][:4], counts[:]) ||
				!slices.Equal(l.blocks[at*l.blockStride:][:len(want)], want) {
				g.t.Fatalf("%v, top %d, head %d, tile %d: counts %v, want %v", c, top, h, tile,
					l.counts[at*4:][:4], counts)
			}
		}
	}
}
