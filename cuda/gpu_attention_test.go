//go:build gpu

package cuda

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda/reference"
)

// attention is one random decode batch, on the GPU and for the reference.
type attention struct {
	reference.Decode
	args DecodeArgs
}

// batch builds caches of the given context lengths: blocks in random slots, NaN in unused slots and
// past the context's end.
func (g *gpu) batch(group, kvHeads, dim, blockTokens int, contexts ...int) *attention {
	a := &attention{}
	a.Shape = reference.Shape{Batch: len(contexts), HeadsQ: group * kvHeads,
		HeadsKV: kvHeads, Dim: dim}
	a.BlockTokens, a.TableStride = blockTokens, 1
	for _, n := range contexts {
		a.Context = append(a.Context, int32(n))
		a.TableStride = max(a.TableStride, (n+blockTokens-1)/blockTokens)
	}
	a.Scale = 1 / math.Sqrt(float64(dim))
	size := 2 * blockTokens * dim
	a.Table = make([]int32, a.Units()*a.TableStride)
	slots := g.r.Perm(len(a.Table) + 3)
	pool := make([]Half, len(slots)*size)
	for i := range pool {
		pool[i] = 0x7e00
	}
	for unit := range a.Units() {
		for block := range a.TableStride {
			slot := slots[unit*a.TableStride+block]
			a.Table[unit*a.TableStride+block] = int32(slot)
			tokens := min(blockTokens, contexts[unit/kvHeads]-block*blockTokens)
			for kv := range 2 {
				if tokens > 0 {
					values, _ := g.normal(tokens*dim, 1)
					copy(pool[slot*size+kv*size/2:], values)
				}
			}
		}
	}
	q, qf := g.normal(a.Batch*a.HeadsQ*dim, 1.5)
	a.Pool, a.Q = Floats(pool), qf
	a.args = DecodeArgs{
		Q: upload(g, q), Pool: upload(g, pool), Table: upload(g, a.Table), Context: upload(g, a.Context),
		Batch: int32(a.Batch), HeadsQ: int32(a.HeadsQ), HeadsKV: int32(kvHeads), HeadDim: int32(dim),
		BlockTokens: int32(blockTokens), TableStride: int32(a.TableStride),
		MaxBlocks: int32(a.TableStride), Scale: float32(a.Scale),
	}
	return a
}

// choose gives each unit a random list of up to k of its blocks; every third unit gets none if
// empty is set.
func (g *gpu) choose(a *attention, k int, empty bool) {
	a.ListStride = max(k, 1)
	a.List, a.Count = make([]int32, a.Units()*a.ListStride), make([]int32, a.Units())
	for unit := range a.Units() {
		if empty && unit%3 == 0 {
			continue
		}
		n := a.Blocks(unit / a.HeadsKV)
		order := g.r.Perm(n)[:min(k, n)]
		a.Count[unit] = int32(len(order))
		for i, block := range order {
			a.List[unit*a.ListStride+i] = int32(block)
		}
	}
	a.args.List, a.args.Count, a.args.ListStride, a.args.MaxBlocks = upload(g, a.List),
		upload(g, a.Count), int32(a.ListStride), int32(k)
}

// check runs the kernel with the library's splits and with some given ones, `more` among them,
// twice each: the workspace must come back clean, and the bytes be the same.
func (g *gpu) check(what string, a *attention, more ...int32) {
	g.t.Helper()
	want, wantLSE := a.Run()
	for _, splits := range append([]int32{0, 1, 3, 7}, more...) {
		args := a.args
		args.Splits = splits
		bytes, err := g.Workspace(&args)
		g.must(err)
		args.Workspace = g.zeroed(bytes)
		var before []Half
		for range 2 {
			args.Out, args.LSE = g.device(int64(len(want))*2), g.device(int64(len(wantLSE))*4)
			g.must(g.Launch(&args, 0))
			name := fmt.Sprintf("%s, %d splits", what, splits)
			out := download[Half](g, args.Out, len(want))
			g.near(name, Floats(out), want, a.Dim, 1e-3, 4e-3)
			if before != nil && !slices.Equal(out, before) {
				g.t.Fatalf("%s: not the bytes of the run before", name)
			}
			before = out
			for i, lse := range download[float32](g, args.LSE, len(wantLSE)) {
				if d := float64(lse) - wantLSE[i]; !(math.Abs(d) < 2e-3) && float64(lse) != wantLSE[i] {
					g.t.Fatalf("%s: lse %d is %g, want %g", name, i, lse, wantLSE[i])
				}
			}
		}
	}
}

func TestGPUDecode(t *testing.T) {
	onGPU(t, func(g *gpu) {
		for _, c := range []struct {
			group, kvHeads, dim, block int
			contexts                   []int
		}{
			{1, 4, 128, 32, []int{1, 31, 32, 33, 1000}},
			{4, 2, 128, 32, []int{777, 5}},
			{7, 2, 128, 16, []int{129, 16, 17}},
			{8, 2, 128, 64, []int{500}},
			{8, 1, 64, 32, []int{333, 1, 64}},
			{1, 3, 64, 16, []int{4097}},
		} {
			what := fmt.Sprintf("group %d, head %d, block %d", c.group, c.dim, c.block)
			a := g.batch(c.group, c.kvHeads, c.dim, c.block, c.contexts...)
			g.check("dense, "+what, a)
			for _, k := range []int{1, 5, 64} {
				g.choose(a, k, k == 5)
				g.check(fmt.Sprintf("sparse, k %d, %s", k, what), a)
			}
		}
	})
}

// Contexts of one block and long ones: runs of blocks that end one unit, hold many whole ones,
// or are a small part of one; more requests than lanes.
func TestGPUDecodeUnequal(t *testing.T) {
	onGPU(t, func(g *gpu) {
		many := slices.Repeat([]int{1, 40, 16}, 14)
		many[20], many[35] = 2000, 0
		for _, c := range []struct {
			group, kvHeads, dim, block int
			contexts                   []int
		}{
			{1, 2, 128, 32, []int{1, 33, 8192, 31, 2000}},
			{4, 2, 128, 32, []int{8191, 1, 31, 33}},
			{8, 1, 128, 16, []int{5, 4097, 17}},
			{4, 1, 64, 64, []int{0, 8192, 63, 65, 1000}},
			{1, 3, 64, 16, many},
			{4, 2, 128, 16, many},
			// Small batches, in which every CTA has one piece: contexts like 1:8 and 1:2:4:8, no
			// whole number of blocks a warp, an empty one.
			{4, 8, 128, 32, []int{1820, 14564}},
			{4, 8, 128, 32, []int{1100, 2190, 4380, 8730}},
			{4, 8, 128, 32, []int{5704}},
			{1, 32, 128, 32, []int{1820, 14564}},
			{8, 4, 128, 32, []int{9000, 0, 4001}},
			{2, 3, 64, 16, []int{40, 3000, 7}},
			// Three requests of many heads, which no whole pieces fit.
			{1, 32, 128, 32, []int{3510, 7020, 14040}},
			// By the SMs of an H200: units somewhat more than CTAs at once, so that one wave shares
			// them.
			{1, 17, 64, 16, []int{16, 33, 90, 150, 31, 100, 77, 260, 3, 145, 18, 160, 50, 99, 1, 128, 200}},
		} {
			g.check(fmt.Sprintf("group %d, head %d, block %d, contexts %v", c.group, c.dim, c.block,
				c.contexts), g.batch(c.group, c.kvHeads, c.dim, c.block, c.contexts...))
		}
	})
}

// More CTAs than the weights of one unit's pieces have shared memory for: the pieces of nine
// requests, eight of which are short.
func TestGPUDecodeManyPieces(t *testing.T) {
	onGPU(t, func(g *gpu) {
		a := g.batch(8, 1, 64, 16, append([]int{38400}, slices.Repeat([]int{1}, 8)...)...)
		g.check("256 CTAs a request, nearly all of one of nine", a, 256)
	})
}

// A workspace zeroed once serves one batch after another, as steps of a server: small, large,
// dense, of lists.
func TestGPUDecodeWorkspaceOfManyBatches(t *testing.T) {
	onGPU(t, func(g *gpu) {
		var all []*attention
		for _, contexts := range [][]int{{700}, {900, 33, 1, 2500}, slices.Repeat([]int{300, 40}, 20),
			{4000, 5}} {
			dense := g.batch(4, 4, 128, 32, contexts...)
			lists := *dense
			g.choose(&lists, 12, false)
			all = append(all, dense, &lists)
		}
		most := int64(0)
		for _, a := range all {
			bytes, err := g.Workspace(&a.args)
			g.must(err)
			most = max(most, bytes)
		}
		workspace := g.zeroed(most)
		for round := range 2 {
			for i, a := range all {
				want, _ := a.Run()
				a.args.Workspace, a.args.Out = workspace, g.device(int64(len(want))*2)
				g.must(g.Launch(&a.args, 0))
				g.near(fmt.Sprintf("round %d, batch %d", round, i),
					Floats(download[Half](g, a.args.Out, len(want))), want, a.Dim, 1e-3, 4e-3)
			}
		}
	})
}

// A head may have scores far from zero and far apart: the running maximum must hold them.
func TestGPUDecodeWithExtremeScores(t *testing.T) {
	onGPU(t, func(g *gpu) {
		a := g.batch(4, 1, 128, 32, 200)
		a.Scale, a.args.Scale = 3, 3 // scores of some +-50
		g.check("extreme", a)
	})
}
