//go:build gpu

package cuda

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"sparseserve/cuda/oracle"
)

// attention is one random decode batch, on the GPU and for the oracle.
type attention struct {
	oracle.Decode
	args DecodeArgs
}

// batch builds caches of the given context lengths: blocks in random slots, NaN in unused slots and past the context's end.
func (g *gpu) batch(group, kvHeads, dim, blockTokens int, contexts ...int) *attention {
	a := &attention{}
	a.Shape = oracle.Shape{Batch: len(contexts), HeadsQ: group * kvHeads, HeadsKV: kvHeads, Dim: dim}
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
	a.Pool, a.Q = floatsOf(pool), qf
	a.args = DecodeArgs{
		Q: upload(g, q), Pool: upload(g, pool), Table: upload(g, a.Table), Context: upload(g, a.Context),
		Batch: int32(a.Batch), HeadsQ: int32(a.HeadsQ), HeadsKV: int32(kvHeads), HeadDim: int32(dim), BlockTokens: int32(blockTokens),
		TableStride: int32(a.TableStride), MaxBlocks: int32(a.TableStride), Scale: float32(a.Scale),
	}
	return a
}

// choose gives each unit a random list of up to k of its blocks; every third unit gets none if empty is set.
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
	a.args.List, a.args.Count, a.args.ListStride, a.args.MaxBlocks = upload(g, a.List), upload(g, a.Count), int32(a.ListStride), int32(k)
}

// check runs the kernel with the library's splits and with some given ones, `more` among them, twice each: the workspace must come back clean, and the
// bytes be the same.
func (g *gpu) check(what string, a *attention, more ...int32) {
	g.t.Helper()
	want, wantLSE := a.Run()
	for _, splits := range append([]int32{0, 1, 3, 7}, more...) {
		args := a.args
		args.Splits = splits
		bytes, err := g.DecodeWorkspace(&args)
		g.must(err)
		args.Workspace = g.zeroed(bytes)
		var before []Half
		for range 2 {
			args.Out, args.LSE = g.device(int64(len(want))*2), g.device(int64(len(wantLSE))*4)
			g.must(g.Decode(&args, 0))
			name := fmt.Sprintf("%s, %d splits", what, splits)
			out := download[Half](g, args.Out, len(want))
			g.near(name, floatsOf(out), want, a.Dim, 1e-3, 4e-3)
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

// Contexts of one block beside long ones: runs of blocks that end one unit, hold many whole ones, or are a small part of one; more requests than lanes.
func TestGPUDecodeUnequal(t *testing.T) {
	onGPU(t, func(g *gpu) {
		crowd := slices.Repeat([]int{1, 40, 16}, 14)
		crowd[20], crowd[35] = 2000, 0
		for _, c := range []struct {
			group, kvHeads, dim, block int
			contexts                   []int
		}{
			{1, 2, 128, 32, []int{1, 33, 8192, 31, 2000}},
			{4, 2, 128, 32, []int{8191, 1, 31, 33}},
			{8, 1, 128, 16, []int{5, 4097, 17}},
			{4, 1, 64, 64, []int{0, 8192, 63, 65, 1000}},
			{1, 3, 64, 16, crowd},
			{4, 2, 128, 16, crowd},
			// Few units, of which every CTA has one piece: contexts like 1:8 and 1:2:4:8, no whole number of blocks a warp, an empty one.
			{4, 8, 128, 32, []int{1820, 14564}},
			{4, 8, 128, 32, []int{1100, 2190, 4380, 8730}},
			{4, 8, 128, 32, []int{5704}},
			{1, 32, 128, 32, []int{1820, 14564}},
			{8, 4, 128, 32, []int{9000, 0, 4001}},
			{2, 3, 64, 16, []int{40, 3000, 7}},
			// Three requests of many heads, which no whole pieces fit.
			{1, 32, 128, 32, []int{3510, 7020, 14040}},
			// By the SMs of an H200: units somewhat more than CTAs at once, so that one wave shares them.
			{1, 17, 64, 16, []int{16, 33, 90, 150, 31, 100, 77, 260, 3, 145, 18, 160, 50, 99, 1, 128, 200}},
		} {
			g.check(fmt.Sprintf("group %d, head %d, block %d, contexts %v", c.group, c.dim, c.block, c.contexts), g.batch(c.group, c.kvHeads, c.dim, c.block, c.contexts...))
		}
	})
}

// More CTAs than the weights of one unit's pieces have shared memory for: those of nine requests, eight of which leave theirs to the first.
func TestGPUDecodeManyPieces(t *testing.T) {
	onGPU(t, func(g *gpu) {
		a := g.batch(8, 1, 64, 16, append([]int{38400}, slices.Repeat([]int{1}, 8)...)...)
		g.check("256 CTAs a request, nearly all of one of nine", a, 256)
	})
}

// A workspace zeroed once serves one batch after another, as steps of a server: small, large, dense, of lists.
func TestGPUDecodeWorkspaceOfManyBatches(t *testing.T) {
	onGPU(t, func(g *gpu) {
		var all []*attention
		for _, contexts := range [][]int{{700}, {900, 33, 1, 2500}, slices.Repeat([]int{300, 40}, 20), {4000, 5}} {
			dense := g.batch(4, 4, 128, 32, contexts...)
			lists := *dense
			g.choose(&lists, 12, false)
			all = append(all, dense, &lists)
		}
		most := int64(0)
		for _, a := range all {
			bytes, err := g.DecodeWorkspace(&a.args)
			g.must(err)
			most = max(most, bytes)
		}
		workspace := g.zeroed(most)
		for round := range 2 {
			for i, a := range all {
				want, _ := a.Run()
				a.args.Workspace, a.args.Out = workspace, g.device(int64(len(want))*2)
				g.must(g.Decode(&a.args, 0))
				g.near(fmt.Sprintf("round %d, batch %d", round, i), floatsOf(download[Half](g, a.args.Out, len(want))), want, a.Dim, 1e-3, 4e-3)
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

func (g *gpu) psa(a *attention, micro int, epsilon float64) (*oracle.PSA, *PSAArgs) {
	p := &oracle.PSA{Shape: a.Shape, Cache: a.Cache, Q: a.Q, Order: a.List, OrderStride: a.ListStride, Count: a.Count, Micro: micro, Scale: a.Scale, Epsilon: epsilon}
	args := &PSAArgs{
		Q: a.args.Q, Pool: a.args.Pool, Table: a.args.Table, Context: a.args.Context, Order: a.args.List, Count: a.args.Count,
		Out: g.device(int64(len(a.Q)) * 2), Used: g.device(int64(a.Units()) * 4), Done: g.device(int64(a.Units()) * 4),
		Flag: g.host(4, DriverPages).Ptr(), Batch: a.args.Batch, HeadsQ: a.args.HeadsQ, HeadsKV: a.args.HeadsKV, HeadDim: a.args.HeadDim,
		BlockTokens: a.args.BlockTokens, TableStride: a.args.TableStride, OrderStride: a.args.ListStride, Micro: int32(micro),
		Scale: a.args.Scale, Epsilon: float32(epsilon),
	}
	bytes, err := g.PSAState(args)
	g.must(err)
	args.State = g.zeroed(bytes)
	return p, args
}

// checkPSA compares outputs and stops; a unit whose weight came within rounding of epsilon may stop elsewhere.
func (g *gpu) checkPSA(what string, want oracle.PSAResult, a *attention, args *PSAArgs) (stopped int) {
	g.t.Helper()
	out := floatsOf(download[Half](g, args.Out, len(a.Q)))
	used := download[int32](g, args.Used, a.Units())
	for i, done := range download[int32](g, args.Done, a.Units()) {
		if done != 1 {
			g.t.Errorf("%s: unit %d is not done: %d", what, i, done)
		}
	}
	rows := a.Group() * a.Dim
	for unit := range a.Units() {
		if want.Margin[unit] < 2e-3 {
			copy(out[unit*rows:(unit+1)*rows], want.Out[unit*rows:(unit+1)*rows])
			continue
		}
		if used[unit] != want.Used[unit] {
			g.t.Errorf("%s: unit %d used %d of %d blocks, want %d", what, unit, used[unit], a.Count[unit], want.Used[unit])
			return
		}
		if used[unit] < a.Count[unit] {
			stopped++
		}
	}
	g.near(what, out, want.Out, a.Dim, 1e-3, 4e-3)
	return stopped
}

func TestGPUPSA(t *testing.T) {
	onGPU(t, func(g *gpu) {
		stopped := 0
		for _, c := range []struct {
			group, kvHeads, dim, block int
			contexts                   []int
		}{
			{1, 4, 128, 32, []int{1000, 31, 700, 1}},
			{4, 2, 128, 32, []int{2000, 333}},
			{8, 1, 64, 16, []int{900, 5}},
			// By units against the SMs of an H200: 8, 4 and 2 CTAs a unit, one, and more units than SMs.
			{4, 1, 128, 32, []int{1, 2100, 33}},
			{4, 30, 128, 16, []int{400}},
			{8, 20, 64, 32, []int{400, 33}},
			{4, 50, 64, 16, []int{200, 90}},
			{1, 70, 128, 32, []int{300, 301}},
		} {
			a := g.batch(c.group, c.kvHeads, c.dim, c.block, c.contexts...)
			g.choose(a, a.TableStride, true)
			micros, epsilons := []int{1, 2, 4, 7, 8, 12, 100}, []float64{1e-3, 0.4, 0.8, 1}
			if testing.Short() { // under a checker that makes each launch many times slower
				micros, epsilons = []int{4, 7}, []float64{0.8}
			}
			for _, micro := range micros {
				for _, epsilon := range epsilons {
					p, args := g.psa(a, micro, epsilon)
					want := p.Run()
					what := fmt.Sprintf("group %d, head %d, %d units, micro %d, epsilon %g", c.group, c.dim, a.Units(), micro, epsilon)
					steps := (a.TableStride + micro - 1) / micro
					// All in one launch, then one launch a microbatch: the state between launches must change nothing.
					args.Steps = int32(steps)
					g.must(g.PSA(args, 0))
					stopped += g.checkPSA(what, want, a, args)
					for step := range steps {
						args.First, args.Steps = int32(step), 1
						g.must(g.PSA(args, 0))
					}
					g.checkPSA(what+", stepwise", want, a, args)
				}
			}
		}
		if stopped < 20 && !testing.Short() {
			t.Errorf("only %d units stopped early: the suite proves little", stopped)
		}
	})
}

func TestGPUPSAPipeline(t *testing.T) {
	onGPU(t, func(g *gpu) {
		const micro = 4
		a := g.batch(4, 2, 128, 32, 2000, 333, 64)
		g.choose(a, a.TableStride, false)
		size := 2 * a.BlockTokens * a.Dim * 2
		// Every block is a miss: its data waits in host memory, its slot in HBM holds poison.
		slots := len(a.Pool) * 2 / size
		slab := g.host(int64(slots*size), DriverPages)
		g.must(g.Memcpy(&MemcpyArgs{Dst: slab.Ptr(), Src: a.args.Pool, Bytes: int64(slots * size)}, 0))
		g.must(g.StreamSync(0))
		for _, epsilon := range []float64{0.5, 1} {
			p, args := g.psa(a, micro, epsilon)
			want := p.Run()
			args.Pool = g.device(int64(slots * size))
			steps := (a.TableStride + micro - 1) / micro
			var first []int64
			var src, dst []Ptr
			var owner []int32
			for step := range steps {
				first = append(first, int64(len(src)))
				for unit := range a.Units() {
					order := a.List[unit*a.ListStride:][:a.Count[unit]]
					for _, block := range order[min(step*micro, len(order)):min((step+1)*micro, len(order))] {
						at := Ptr(int(a.Table[unit*a.TableStride+int(block)]) * size)
						src, dst, owner = append(src, slab.Ptr()+at), append(dst, args.Pool+at), append(owner, int32(unit))
					}
				}
			}
			first = append(first, int64(len(src)))
			host := g.host(int64(len(first))*8, DriverPages)
			copy(Slice[int64](host), first)
			for _, depth := range []int32{1, 2, 5} {
				g.must(g.Memset(&MemsetArgs{Dst: args.Pool, Bytes: int64(slots * size), Value: 0xff}, 0))
				g.must(g.StreamSync(0))
				var loaded int32
				g.must(g.PSAPipeline(&PSAPipelineArgs{PSA: args, LoadFirst: host.Ptr(), Src: upload(g, src), Dst: upload(g, dst), Owner: upload(g, owner),
					BlockBytes: int64(size), Microbatches: int32(steps), Depth: depth, Loaded: &loaded}, 0))
				g.checkPSA(fmt.Sprintf("pipeline, epsilon %g, depth %d", epsilon, depth), want, a, args)
				needed := (slices.Max(want.Used) + micro - 1) / micro
				if slices.Min(want.Margin) > 2e-3 && (loaded < needed || loaded > needed+depth) {
					t.Errorf("epsilon %g, depth %d: %d microbatches loaded, %d needed of %d", epsilon, depth, loaded, needed, steps)
				}
				if done := download[int32](g, args.Flag, 1)[0]; done != 1 {
					t.Errorf("the flag is %d", done)
				}
			}
		}
	})
}

// Microbatches without loads share a launch, loads of those that no list reaches are only started, and a call goes on to the next without waiting.
func TestGPUPSAPipelineTurns(t *testing.T) {
	onGPU(t, func(g *gpu) {
		const micro = 4
		a := g.batch(4, 2, 128, 32, 2000, 333, 64)
		g.choose(a, a.TableStride, false)
		size := 2 * a.BlockTokens * a.Dim * 2
		slots := len(a.Pool) * 2 / size
		slab := g.host(int64(slots*size), DriverPages)
		g.must(g.Memcpy(&MemcpyArgs{Dst: slab.Ptr(), Src: a.args.Pool, Bytes: int64(slots * size)}, 0))
		g.must(g.StreamSync(0))
		steps := (a.TableStride + micro - 1) / micro
		for _, own := range []bool{false, true} {
			var loads Stream
			if own {
				var err error
				loads, err = g.StreamCreate(false)
				g.must(err)
			}
			type call struct {
				args  *PSAArgs
				want  oracle.PSAResult
				spare Ptr // what only the last microbatch loads
				begun int32
				run   PSAPipelineArgs
			}
			calls := make([]call, 6)
			for i := range calls {
				c := &calls[i]
				var p *oracle.PSA
				p, c.args = g.psa(a, micro, 1)
				c.want, c.spare, c.args.Pool = p.Run(), g.device(int64(size)), g.device(int64(slots*size))
				g.must(g.Memset(&MemsetArgs{Dst: c.spare, Bytes: int64(size), Value: 0xff}, 0))
				g.must(g.Memcpy(&MemcpyArgs{Dst: c.args.Pool, Src: slab.Ptr(), Bytes: int64(slots * size)}, 0))
				var first []int64
				var src, dst []Ptr
				for step := range steps {
					first = append(first, int64(len(src)))
					for unit := range a.Units() {
						order := a.List[unit*a.ListStride:][:a.Count[unit]]
						for _, block := range order[min(step*micro, len(order)):min((step+1)*micro, len(order))] {
							if step%3 == i%3 { // the first call's loads begin at once, the next ones' later
								at := Ptr(int(a.Table[unit*a.TableStride+int(block)]) * size)
								src, dst = append(src, slab.Ptr()+at), append(dst, c.args.Pool+at)
								g.must(g.Memset(&MemsetArgs{Dst: c.args.Pool + at, Bytes: int64(size), Value: 0xff}, 0))
							}
						}
					}
				}
				first = append(first, int64(len(src)), int64(len(src))+1)
				src, dst = append(src, slab.Ptr()), append(dst, c.spare)
				host := g.host(int64(len(first))*8, DriverPages)
				copy(Slice[int64](host), first)
				c.run = PSAPipelineArgs{PSA: c.args, LoadFirst: host.Ptr(), Src: upload(g, src), Dst: upload(g, dst), BlockBytes: int64(size),
					Microbatches: int32(steps + 1), Depth: 2, Loaded: &c.begun, Loads: loads, Reached: int32(steps)}
			}
			g.must(g.StreamSync(0))
			for i := range calls {
				g.must(g.PSAPipeline(&calls[i].run, 0))
			}
			if own {
				g.must(g.StreamSync(loads))
			}
			g.must(g.StreamSync(0))
			want := download[byte](g, slab.Ptr(), 16)
			for i, c := range calls {
				what := fmt.Sprintf("own stream %v, call %d", own, i)
				if int(c.begun) < steps {
					t.Fatalf("%s: %d of %d microbatches", what, c.begun, steps)
				}
				g.checkPSA(what, c.want, a, c.args)
				if got := download[byte](g, c.spare, 16); slices.Equal(got, want) != (int(c.begun) > steps) {
					t.Errorf("%s: %d of %d microbatches, the last one's block begins with %v", what, c.begun, steps+1, got)
				}
				if flag := download[int32](g, c.args.Flag, 1)[0]; flag != 1 {
					t.Errorf("%s: the flag is %d", what, flag)
				}
			}
		}
	})
}

func TestGPUPrefill(t *testing.T) {
	onGPU(t, func(g *gpu) {
		for _, c := range []struct{ group, kvHeads, dim, tokens, prefix int }{
			{1, 2, 128, 1, 0}, {1, 2, 128, 1, 70}, {1, 2, 128, 63, 0}, {4, 1, 128, 129, 0}, {8, 1, 128, 300, 0}, {1, 1, 128, 128, 65},
			{4, 2, 128, 200, 333}, {1, 2, 64, 257, 0}, {8, 1, 64, 65, 127}, {1, 1, 128, 1000, 24},
		} {
			s := oracle.Shape{Batch: 1, HeadsQ: c.group * c.kvHeads, HeadsKV: c.kvHeads, Dim: c.dim}
			total := c.tokens + c.prefix
			q, qf := g.normal(c.tokens*s.HeadsQ*c.dim, 1.5)
			k, kf := g.normal(total*s.HeadsKV*c.dim, 1)
			v, vf := g.normal(total*s.HeadsKV*c.dim, 1)
			p := oracle.Prefill{Shape: s, Q: qf, K: kf, V: vf, QTokens: c.tokens, Prefix: c.prefix, Scale: 1 / math.Sqrt(float64(c.dim))}
			want := p.Run()
			rowQ, rowKV, dim := int64(s.HeadsQ*c.dim), int64(s.HeadsKV*c.dim), int64(c.dim)
			out := g.device(int64(len(want)) * 2)
			// One row of poison after the keys and values: nothing past the end may be read into the answer.
			g.must(g.Prefill(&PrefillArgs{
				Q: upload(g, q), K: upload(g, append(k, slices.Repeat([]Half{0x7e00}, int(rowKV)*64)...)), V: upload(g, append(v, slices.Repeat([]Half{0x7e00}, int(rowKV)*64)...)), Out: out,
				QTokenStride: rowQ, QHeadStride: dim, KTokenStride: rowKV, KHeadStride: dim, VTokenStride: rowKV, VHeadStride: dim,
				OutTokenStride: rowQ, OutHeadStride: dim, QTokens: int32(c.tokens), Prefix: int32(c.prefix), HeadsQ: int32(s.HeadsQ),
				HeadsKV: int32(c.kvHeads), HeadDim: int32(c.dim), Scale: float32(p.Scale)}, 0))
			g.near(fmt.Sprintf("prefill %+v", c), floatsOf(download[Half](g, out, len(want))), want, c.dim, 1e-3, 4e-3)
		}
	})
}

// At lengths where tiles, waves and offsets grow, a sample of rows is checked.
func TestGPUPrefillLong(t *testing.T) {
	onGPU(t, func(g *gpu) {
		const tokens, prefix, heads, dim = 5000, 3001, 2, 128
		s := oracle.Shape{Batch: 1, HeadsQ: heads, HeadsKV: 1, Dim: dim}
		q, qf := g.normal(tokens*heads*dim, 1.5)
		k, kf := g.normal((tokens+prefix)*dim, 1)
		v, vf := g.normal((tokens+prefix)*dim, 1)
		p := oracle.Prefill{Shape: s, Q: qf, K: kf, V: vf, QTokens: tokens, Prefix: prefix, Scale: 0.09}
		out := g.device(tokens * heads * dim * 2)
		g.must(g.Prefill(&PrefillArgs{Q: upload(g, q), K: upload(g, k), V: upload(g, v), Out: out, QTokenStride: heads * dim, QHeadStride: dim, KTokenStride: dim, KHeadStride: dim,
			VTokenStride: dim, VHeadStride: dim, OutTokenStride: heads * dim, OutHeadStride: dim, QTokens: tokens, Prefix: prefix, HeadsQ: heads, HeadsKV: 1, HeadDim: dim, Scale: 0.09}, 0))
		got := floatsOf(download[Half](g, out, tokens*heads*dim))
		want := make([]float64, heads*dim)
		for _, i := range append(g.r.Perm(tokens)[:60], 0, 127, 128, tokens-1) {
			p.Row(i, want)
			g.near(fmt.Sprintf("row %d", i), got[i*heads*dim:(i+1)*heads*dim], want, dim, 2e-3, 4e-3)
		}
	})
}

// Other layouts reach the kernel by strides alone: here [head][token][d].
func TestGPUPrefillStrides(t *testing.T) {
	onGPU(t, func(g *gpu) {
		const tokens, heads, dim = 150, 3, 128
		s := oracle.Shape{Batch: 1, HeadsQ: heads, HeadsKV: heads, Dim: dim}
		n := tokens * heads * dim
		_, q := g.normal(n, 1)
		_, k := g.normal(n, 1)
		_, v := g.normal(n, 1)
		p := oracle.Prefill{Shape: s, Q: q, K: k, V: v, QTokens: tokens, Scale: 0.1}
		turned := func(x []float64) Ptr {
			h := make([]Half, n)
			for i := range n {
				token, head, d := i/(heads*dim), i/dim%heads, i%dim
				h[(head*tokens+token)*dim+d] = HalfOf(x[i])
			}
			return upload(g, h)
		}
		out := g.device(int64(n) * 2)
		g.must(g.Prefill(&PrefillArgs{Q: turned(q), K: turned(k), V: turned(v), Out: out, QTokenStride: dim, QHeadStride: tokens * dim, KTokenStride: dim, KHeadStride: tokens * dim,
			VTokenStride: dim, VHeadStride: tokens * dim, OutTokenStride: heads * dim, OutHeadStride: dim, QTokens: tokens, HeadsQ: heads, HeadsKV: heads, HeadDim: dim, Scale: 0.1}, 0))
		g.near("strides", floatsOf(download[Half](g, out, n)), p.Run(), dim, 1e-3, 4e-3)
	})
}

// Keys and values in blocks give bit for bit what the same keys and values give as tensors: the arithmetic is one.
func TestGPUPrefillPaged(t *testing.T) {
	onGPU(t, func(g *gpu) {
		for _, c := range []struct{ group, kvHeads, dim, block, tokens, prefix int }{
			{1, 2, 128, 32, 1, 0}, {1, 2, 128, 32, 1, 70}, {4, 2, 128, 32, 129, 0}, {8, 1, 128, 16, 300, 500}, {1, 3, 128, 48, 200, 333}, {4, 1, 128, 64, 128, 64},
			{1, 2, 64, 16, 257, 0}, {8, 1, 64, 32, 65, 127}, {4, 2, 64, 80, 33, 95}, {1, 1, 128, 128, 1000, 24}, {4, 1, 128, 32, 512, 3000},
		} {
			headsQ, total := c.group*c.kvHeads, c.tokens+c.prefix
			what := fmt.Sprintf("paged prefill %+v", c)
			q, qf := g.normal(c.tokens*headsQ*c.dim, 1.5)
			k, kf := g.normal(total*c.kvHeads*c.dim, 1)
			v, vf := g.normal(total*c.kvHeads*c.dim, 1)
			// Blocks in random slots; NaN in unused slots and past the context's end. A table row is longer than its blocks.
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
			args := PrefillArgs{Q: upload(g, q), K: upload(g, k), V: upload(g, v), Out: g.device(int64(len(q)) * 2), QTokenStride: rowQ, QHeadStride: dim, KTokenStride: rowKV,
				KHeadStride: dim, VTokenStride: rowKV, VHeadStride: dim, OutTokenStride: rowQ, OutHeadStride: dim, QTokens: int32(c.tokens), Prefix: int32(c.prefix),
				HeadsQ: int32(headsQ), HeadsKV: int32(c.kvHeads), HeadDim: int32(c.dim), Scale: float32(1 / math.Sqrt(float64(c.dim)))}
			g.must(g.Prefill(&args, 0))
			tensors := download[Half](g, args.Out, len(q))
			args.K, args.V, args.KTokenStride, args.VTokenStride = 0, 0, 0, 0
			args.Out, args.Pool, args.Table, args.TableStride, args.BlockTokens = g.device(int64(len(q))*2), upload(g, pool), upload(g, table), int32(stride), int32(c.block)
			g.must(g.Prefill(&args, 0))
			paged := download[Half](g, args.Out, len(q))
			p := oracle.Prefill{Shape: oracle.Shape{Batch: 1, HeadsQ: headsQ, HeadsKV: c.kvHeads, Dim: c.dim}, Q: qf, K: kf, V: vf, QTokens: c.tokens, Prefix: c.prefix,
				Scale: 1 / math.Sqrt(float64(c.dim))}
			g.near(what, floatsOf(paged), p.Run(), c.dim, 1e-3, 4e-3)
			if !slices.Equal(paged, tensors) {
				t.Errorf("%s: not what the tensors give", what)
			}
		}
	})
}
