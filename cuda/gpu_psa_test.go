//go:build gpu

package cuda

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda/reference"
)

func (g *gpu) psa(a *attention, micro int, epsilon float64) (*reference.PSA, *PSAArgs) {
	p := &reference.PSA{Shape: a.Shape, Cache: a.Cache, Q: a.Q, Order: a.List,
		OrderStride: a.ListStride, Count: a.Count, Micro: micro, Scale: a.Scale, Epsilon: epsilon}
	args := &PSAArgs{
		Q: a.args.Q, Pool: a.args.Pool, Table: a.args.Table, Context: a.args.Context, Order: a.args.List,
		Count: a.args.Count, Out: g.device(int64(len(a.Q)) * 2), Used: g.device(int64(a.Units()) * 4),
		Done: g.device(int64(a.Units()) * 4), Flag: g.host(4, DriverPages).Ptr(), Batch: a.args.Batch,
		HeadsQ: a.args.HeadsQ, HeadsKV: a.args.HeadsKV, HeadDim: a.args.HeadDim,
		BlockTokens: a.args.BlockTokens, TableStride: a.args.TableStride, OrderStride: a.args.ListStride,
		Micro: int32(micro), Scale: a.args.Scale, Epsilon: float32(epsilon),
	}
	bytes, err := g.Workspace(args)
	g.must(err)
	args.State = g.zeroed(bytes)
	return p, args
}

// checkPSA compares outputs and stops; a unit whose weight came within rounding of epsilon may stop
// elsewhere.
func (g *gpu) checkPSA(what string, want reference.PSAResult, a *attention,
	args *PSAArgs) (stopped int) {
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
			g.t.Errorf("%s: unit %d used %d of %d blocks, want %d", what, unit, used[unit], a.Count[unit],
				want.Used[unit])
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
			// By units against the SMs of an H200: 8, 4 and 2 CTAs a unit, one, and more units than
			// SMs.
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
					what := fmt.Sprintf("group %d, head %d, %d units, micro %d, epsilon %g", c.group, c.dim,
						a.Units(), micro, epsilon)
					steps := (a.TableStride + micro - 1) / micro
					// All in one launch, then one launch a microbatch: the state between launches
					// must change nothing.
					args.Steps = int32(steps)
					g.must(g.Launch(args, 0))
					stopped += g.checkPSA(what, want, a, args)
					for step := range steps {
						args.First, args.Steps = int32(step), 1
						g.must(g.Launch(args, 0))
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

// misses are the loads of listed blocks, from a slab with the pool's layout, by microbatch.
type misses struct {
	first    []int64 // load of each microbatch
	src, dst []Ptr
	owner    []int32
}

// misses lists the loads of the microbatches for which wanted holds.
func (a *attention) misses(micro int, slab, pool Ptr, wanted func(step int) bool) (m misses) {
	size := 4 * a.BlockTokens * a.Dim
	for step := 0; step*micro < a.TableStride; step++ {
		m.first = append(m.first, int64(len(m.src)))
		for unit := 0; unit < a.Units() && wanted(step); unit++ {
			order := a.List[unit*a.ListStride:][:a.Count[unit]]
			for _, block := range order[min(step*micro, len(order)):min((step+1)*micro, len(order))] {
				at := Ptr(int(a.Table[unit*a.TableStride+int(block)]) * size)
				m.src, m.dst = append(m.src, slab+at), append(m.dst, pool+at)
				m.owner = append(m.owner, int32(unit))
			}
		}
	}
	m.first = append(m.first, int64(len(m.src)))
	return m
}

// inHost makes a batch whose every block is a miss: its data waits in host memory, in slots of size
// bytes.
func (g *gpu) inHost() (a *attention, slab HostMemory, slots, size int) {
	a = g.batch(4, 2, 128, 32, 2000, 333, 64)
	g.choose(a, a.TableStride, false)
	size = 2 * a.BlockTokens * a.Dim * 2
	slots = len(a.Pool) * 2 / size
	slab = g.host(int64(slots*size), DriverPages)
	g.must(g.Launch(&MemcpyArgs{Dst: slab.Ptr(), Src: a.args.Pool, Bytes: int64(slots * size)}, 0))
	g.must(g.StreamSync(0))
	return a, slab, slots, size
}

func TestGPUPSAPipeline(t *testing.T) {
	onGPU(t, func(g *gpu) {
		const micro = 4
		a, slab, slots, size := g.inHost()
		for _, epsilon := range []float64{0.5, 1} {
			p, args := g.psa(a, micro, epsilon)
			want := p.Run()
			args.Pool = g.device(int64(slots * size))
			steps := (a.TableStride + micro - 1) / micro
			all := a.misses(micro, slab.Ptr(), args.Pool, func(int) bool { return true })
			host := g.host(int64(len(all.first))*8, DriverPages)
			copy(Slice[int64](host), all.first)
			for _, depth := range []int32{1, 2, 5} {
				// poison
				g.must(g.Launch(&MemsetArgs{Dst: args.Pool, Bytes: int64(slots * size), Value: 0xff}, 0))
				g.must(g.StreamSync(0))
				var loaded int32
				g.must(g.Launch(&PSAPipelineArgs{PSA: args, LoadFirst: host.Ptr(), Src: upload(g, all.src),
					Dst: upload(g, all.dst), Owner: upload(g, all.owner),
					BlockBytes: int64(size), Microbatches: int32(steps), Depth: depth, Loaded: &loaded}, 0))
				g.checkPSA(fmt.Sprintf("pipeline, epsilon %g, depth %d", epsilon, depth), want, a, args)
				needed := (slices.Max(want.Used) + micro - 1) / micro
				if slices.Min(want.Margin) > 2e-3 && (loaded < needed || loaded > needed+depth) {
					t.Errorf("epsilon %g, depth %d: %d microbatches loaded, %d needed of %d", epsilon, depth,
						loaded, needed, steps)
				}
				if done := download[int32](g, args.Flag, 1)[0]; done != 1 {
					t.Errorf("the flag is %d", done)
				}
			}
		}
	})
}

// Microbatches without loads share a launch, loads of microbatches that no list reaches are only
// started, and a call goes on to the next without waiting.
func TestGPUPSAPipelineSharesLaunches(t *testing.T) {
	onGPU(t, func(g *gpu) {
		const micro = 4
		a, slab, slots, size := g.inHost()
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
				want  reference.PSAResult
				spare Ptr // what only the last microbatch loads
				begun int32
				run   PSAPipelineArgs
			}
			calls := make([]call, 6)
			for i := range calls {
				c := &calls[i]
				var p *reference.PSA
				p, c.args = g.psa(a, micro, 1)
				c.want, c.spare, c.args.Pool = p.Run(), g.device(int64(size)), g.device(int64(slots*size))
				g.must(g.Launch(&MemsetArgs{Dst: c.spare, Bytes: int64(size), Value: 0xff}, 0))
				g.must(g.Launch(&MemcpyArgs{Dst: c.args.Pool, Src: slab.Ptr(), Bytes: int64(slots * size)}, 0))
				// The first call's loads begin at once, the next ones' later.
				late := a.misses(micro, slab.Ptr(), c.args.Pool, func(step int) bool { return step%3 == i%3 })
				for _, at := range late.dst {
					g.must(g.Launch(&MemsetArgs{Dst: at, Bytes: int64(size), Value: 0xff}, 0))
				}
				first := append(late.first, int64(len(late.src))+1)
				src, dst := append(late.src, slab.Ptr()), append(late.dst, c.spare)
				host := g.host(int64(len(first))*8, DriverPages)
				copy(Slice[int64](host), first)
				c.run = PSAPipelineArgs{PSA: c.args, LoadFirst: host.Ptr(), Src: upload(g, src),
					Dst: upload(g, dst), BlockBytes: int64(size),
					Microbatches: int32(steps + 1), Depth: 2, Loaded: &c.begun, Loads: loads,
					Reached: int32(steps)}
			}
			g.must(g.StreamSync(0))
			for i := range calls {
				g.must(g.Launch(&calls[i].run, 0))
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
					t.Errorf("%s: %d of %d microbatches, the last one's block begins with %v", what, c.begun,
						steps+1, got)
				}
				if flag := download[int32](g, c.args.Flag, 1)[0]; flag != 1 {
					t.Errorf("%s: the flag is %d", what, flag)
				}
			}
		}
	})
}
