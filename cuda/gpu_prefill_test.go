//go:build gpu

package cuda

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda/reference"
)

func TestGPUPrefill(t *testing.T) {
	onGPU(t, func(g *gpu) {
		for _, c := range []struct{ group, kvHeads, dim, tokens, prefix int }{
			{1, 2, 128, 1, 0}, {1, 2, 128, 1, 70}, {1, 2, 128, 63, 0}, {4, 1, 128, 129, 0},
			{8, 1, 128, 300, 0}, {1, 1, 128, 128, 65},
			{4, 2, 128, 200, 333}, {1, 2, 64, 257, 0}, {8, 1, 64, 65, 127}, {1, 1, 128, 1000, 24},
		} {
			s := reference.Shape{Batch: 1, HeadsQ: c.group * c.kvHeads, HeadsKV: c.kvHeads, Dim: c.dim}
			total := c.tokens + c.prefix
			q, qf := g.normal(c.tokens*s.HeadsQ*c.dim, 1.5)
			k, kf := g.normal(total*s.HeadsKV*c.dim, 1)
			v, vf := g.normal(total*s.HeadsKV*c.dim, 1)
			p := reference.Prefill{Shape: s, Q: qf, K: kf, V: vf, QTokens: c.tokens, Prefix: c.prefix,
				Scale: 1 / math.Sqrt(float64(c.dim))}
			want := p.Run()
			rowQ, rowKV, dim := int64(s.HeadsQ*c.dim), int64(s.HeadsKV*c.dim), int64(c.dim)
			out := g.device(int64(len(want)) * 2)
			// One row of poison after the keys and values: nothing past the end may be read into
			// the answer.
			g.must(g.Launch(&PrefillArgs{
				Q: upload(g, q), K: upload(g, append(k, slices.Repeat([]Half{0x7e00}, int(rowKV)*64)...)),
				V: upload(g, append(v, slices.Repeat([]Half{0x7e00}, int(rowKV)*64)...)), Out: out,
				QTokenStride: rowQ, QHeadStride: dim, KTokenStride: rowKV, KHeadStride: dim,
				VTokenStride: rowKV, VHeadStride: dim, OutTokenStride: rowQ, OutHeadStride: dim,
				QTokens: int32(c.tokens), Prefix: int32(c.prefix), HeadsQ: int32(s.HeadsQ),
				HeadsKV: int32(c.kvHeads), HeadDim: int32(c.dim), Scale: float32(p.Scale)}, 0))
			g.near(fmt.Sprintf("prefill %+v", c), Floats(download[Half](g, out, len(want))), want, c.dim,
				1e-3, 4e-3)
		}
	})
}

// At lengths where tiles, waves and offsets grow, a sample of rows is checked.
func TestGPUPrefillLong(t *testing.T) {
	onGPU(t, func(g *gpu) {
		const tokens, prefix, heads, dim = 5000, 3001, 2, 128
		s := reference.Shape{Batch: 1, HeadsQ: heads, HeadsKV: 1, Dim: dim}
		q, qf := g.normal(tokens*heads*dim, 1.5)
		k, kf := g.normal((tokens+prefix)*dim, 1)
		v, vf := g.normal((tokens+prefix)*dim, 1)
		p := reference.Prefill{Shape: s, Q: qf, K: kf, V: vf, QTokens: tokens, Prefix: prefix,
			Scale: 0.09}
		out := g.device(tokens * heads * dim * 2)
		g.must(g.Launch(&PrefillArgs{Q: upload(g, q), K: upload(g, k), V: upload(g, v), Out: out,
			QTokenStride: heads * dim, QHeadStride: dim, KTokenStride: dim, KHeadStride: dim,
			VTokenStride: dim, VHeadStride: dim, OutTokenStride: heads * dim, OutHeadStride: dim,
			QTokens: tokens, Prefix: prefix, HeadsQ: heads, HeadsKV: 1, HeadDim: dim, Scale: 0.09}, 0))
		got := Floats(download[Half](g, out, tokens*heads*dim))
		want := make([]float64, heads*dim)
		for _, i := range append(g.r.Perm(tokens)[:60], 0, 127, 128, tokens-1) {
			p.Row(i, want)
			g.near(fmt.Sprintf("row %d", i), got[i*heads*dim:(i+1)*heads*dim], want, dim, 2e-3, 4e-3)
		}
	})
}

// Other layouts reach the kernel by strides: here [head][token][d].
func TestGPUPrefillStrides(t *testing.T) {
	onGPU(t, func(g *gpu) {
		const tokens, heads, dim = 150, 3, 128
		s := reference.Shape{Batch: 1, HeadsQ: heads, HeadsKV: heads, Dim: dim}
		n := tokens * heads * dim
		_, q := g.normal(n, 1)
		_, k := g.normal(n, 1)
		_, v := g.normal(n, 1)
		p := reference.Prefill{Shape: s, Q: q, K: k, V: v, QTokens: tokens, Scale: 0.1}
		transposed := func(x []float64) Ptr {
			h := make([]Half, n)
			for i := range n {
				token, head, d := i/(heads*dim), i/dim%heads, i%dim
				h[(head*tokens+token)*dim+d] = HalfOf(x[i])
			}
			return upload(g, h)
		}
		out := g.device(int64(n) * 2)
		g.must(g.Launch(&PrefillArgs{Q: transposed(q), K: transposed(k), V: transposed(v), Out: out,
			QTokenStride: dim, QHeadStride: tokens * dim, KTokenStride: dim, KHeadStride: tokens * dim,
			VTokenStride: dim, VHeadStride: tokens * dim, OutTokenStride: heads * dim, OutHeadStride: dim,
			QTokens: tokens, HeadsQ: heads, HeadsKV: heads, HeadDim: dim, Scale: 0.1}, 0))
		g.near("strides", Floats(download[Half](g, out, n)), p.Run(), dim, 1e-3, 4e-3)
	})
}

// Keys and values in blocks give bit for bit what the same keys and values give as tensors: the
// arithmetic is one.
func TestGPUPrefillPaged(t *testing.T) {
	onGPU(t, func(g *gpu) {
		for _, c := range []struct{ group, kvHeads, dim, block, tokens, prefix int }{
			{1, 2, 128, 32, 1, 0}, {1, 2, 128, 32, 1, 70}, {4, 2, 128, 32, 129, 0},
			{8, 1, 128, 16, 300, 500}, {1, 3, 128, 48, 200, 333}, {4, 1, 128, 64, 128, 64},
			{1, 2, 64, 16, 257, 0}, {8, 1, 64, 32, 65, 127}, {4, 2, 64, 80, 33, 95},
			{1, 1, 128, 128, 1000, 24}, {4, 1, 128, 32, 512, 3000},
		} {
			headsQ, total := c.group*c.kvHeads, c.tokens+c.prefix
			what := fmt.Sprintf("paged prefill %+v", c)
			q, qf := g.normal(c.tokens*headsQ*c.dim, 1.5)
			k, kf := g.normal(total*c.kvHeads*c.dim, 1)
			v, vf := g.normal(total*c.kvHeads*c.dim, 1)
			// Blocks in random slots; NaN in unused slots and past the context's end. A table row
			// is longer than its blocks.
			blocks, size := (total+c.block-1)/c.block, 2*c.block*c.dim
			stride := blocks + 3
			slots := g.r.Perm(c.kvHeads*stride + 2)
			pool, table := slices.Repeat([]Half{0x7e00}, len(slots)*size), make([]int32, c.kvHeads*stride)
			for h := range c.kvHeads {
				for i := range stride {
					table[h*stride+i] = int32(slots[h*stride+i])
				}
				for i := range total {
					at, from := slots[h*stride+i/c.block]*size+i%c.block*c.dim, (i*c.kvHeads+h)*c.dim
					copy(pool[at:], k[from:from+c.dim])
					copy(pool[at+size/2:], v[from:from+c.dim])
				}
				for i := blocks; i < stride; i++ {
					table[h*stride+i] = math.MaxInt32 // never read
				}
			}
			rowQ, rowKV, dim := int64(headsQ*c.dim), int64(c.kvHeads*c.dim), int64(c.dim)
			args := PrefillArgs{Q: upload(g, q), K: upload(g, k), V: upload(g, v),
				Out: g.device(int64(len(q)) * 2), QTokenStride: rowQ, QHeadStride: dim, KTokenStride: rowKV,
				KHeadStride: dim, VTokenStride: rowKV, VHeadStride: dim, OutTokenStride: rowQ,
				OutHeadStride: dim, QTokens: int32(c.tokens), Prefix: int32(c.prefix),
				HeadsQ: int32(headsQ), HeadsKV: int32(c.kvHeads), HeadDim: int32(c.dim),
				Scale: float32(1 / math.Sqrt(float64(c.dim)))}
			g.must(g.Launch(&args, 0))
			tensors := download[Half](g, args.Out, len(q))
			args.K, args.V, args.KTokenStride, args.VTokenStride = 0, 0, 0, 0
			args.Out, args.Pool, args.Table, args.TableStride, args.BlockTokens = g.device(int64(len(q))*2),
				upload(g, pool), upload(g, table), int32(stride), int32(c.block)
			g.must(g.Launch(&args, 0))
			paged := download[Half](g, args.Out, len(q))
			p := reference.Prefill{Shape: reference.Shape{Batch: 1, HeadsQ: headsQ, HeadsKV: c.kvHeads,
				Dim: c.dim}, Q: qf, K: kf, V: vf, QTokens: c.tokens, Prefix: c.prefix,
				Scale: 1 / math.Sqrt(float64(c.dim))}
			g.near(what, Floats(paged), p.Run(), c.dim, 1e-3, 4e-3)
			if !slices.Equal(paged, tensors) {
				t.Errorf("%s: not what the tensors give", what)
			}
		}
	})
}
