package emulator

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/reference"
)

func (g *fixture) psa(a *attention, micro int, epsilon float64) (*reference.PSA, *cuda.PSAArgs) {
	epsilon = float64(float32(epsilon))
	p := &reference.PSA{Shape: a.Shape, Cache: a.Cache, Q: a.Q, Order: a.List,
		OrderStride: a.ListStride, Count: a.Count, Micro: micro, Scale: a.Scale, Epsilon: epsilon}
	args := &cuda.PSAArgs{
		Q: a.args.Q, Pool: a.args.Pool, Table: a.args.Table, Context: a.args.Context, Order: a.args.List,
		Count: a.args.Count, Out: g.device(len(a.Q) * 2), Used: g.device(a.Units() * 4),
		Done: g.device(a.Units() * 4), Flag: g.host(4).Ptr(), Batch: a.args.Batch, HeadsQ: a.args.HeadsQ,
		HeadsKV: a.args.HeadsKV, HeadDim: a.args.HeadDim, BlockTokens: a.args.BlockTokens,
		TableStride: a.args.TableStride, OrderStride: a.args.ListStride, Micro: int32(micro),
		Scale: a.args.Scale, Epsilon: float32(epsilon),
	}
	bytes, err := g.Workspace(args)
	g.must(err)
	args.State = g.zeroed(bytes)
	return p, args
}

func (g *fixture) checkPSA(what string, want reference.PSAResult, a *attention,
	args *cuda.PSAArgs) (stopped int) {
	g.t.Helper()
	g.near(what, floats(download[cuda.Half](g, args.Out, len(a.Q))), want.Out)
	if used := download[int32](g, args.Used, a.Units()); !slices.Equal(used, want.Used) {
		g.t.Fatalf("%s: used %v, want %v", what, used, want.Used)
	}
	if done := download[int32](g, args.Done, a.Units()); slices.Min(done) != 1 ||
		slices.Max(done) != 1 {
		g.t.Errorf("%s: done %v", what, done)
	}
	if flag := download[int32](g, args.Flag, 1)[0]; flag != 1 {
		g.t.Errorf("%s: the flag is %d", what, flag)
	}
	for unit, used := range want.Used {
		if used < a.Count[unit] {
			stopped++
		}
	}
	return stopped
}

func TestPSA(t *testing.T) {
	g, stopped := newFixture(t, Config{}), 0
	for _, c := range []struct {
		group, kvHeads, dim, block int
		contexts                   []int
	}{{1, 4, 64, 16, []int{400, 31, 1}}, {4, 2, 128, 16, []int{333}}} {
		a := g.batch(c.group, c.kvHeads, c.dim, c.block, c.contexts...)
		g.choose(a, a.TableStride, true)
		for _, micro := range []int{1, 4, 7, 100} {
			for _, epsilon := range []float64{1e-3, 0.4, 0.8, 1} {
				p, args := g.psa(a, micro, epsilon)
				want, what := p.Run(), fmt.Sprintf("%+v, micro %d, epsilon %g", c, micro, epsilon)
				steps := (a.TableStride + micro - 1) / micro
				args.Steps = int32(steps)
				g.must(g.Launch(args, 0))
				stopped += g.checkPSA(what, want, a, args)
				// One call a microbatch: the state between calls must change nothing.
				for step := range steps {
					args.First, args.Steps = int32(step), 1
					g.must(g.Launch(args, 0))
				}
				g.checkPSA(what+", stepwise", want, a, args)
			}
		}
	}
	if stopped < 20 {
		t.Errorf("only %d units stopped early: the test proves little", stopped)
	}
}

// The flag stays down while a unit is not done.
func TestPSAFlagIsOfAllUnits(t *testing.T) {
	g := newFixture(t, Config{})
	a := g.batch(1, 2, 64, 16, 320)
	g.choose(a, a.TableStride, false)
	_, args := g.psa(a, 4, 1)
	args.Steps = 2
	g.must(g.Launch(args, 0))
	if flag := download[int32](g, args.Flag, 1)[0]; flag == 1 {
		t.Error("the flag is up after 8 of 20 blocks")
	}
	args.State = g.device(1 << 16)
	faults(t, "state as allocated", g.Launch(args, 0), "State", "not zero")
}

// misses are the loads of every listed block, from a slab with the pool's layout, by microbatch.
type misses struct {
	first    []int64 // load of each microbatch
	src, dst []cuda.Ptr
	owner    []int32
}

// misses lists the loads of the microbatches for which wanted holds.
func (a *attention) misses(micro int, slab, pool cuda.Ptr, wanted func(step int) bool) (m misses) {
	size := 4 * a.BlockTokens * a.Dim
	for step := 0; step*micro < a.TableStride; step++ {
		m.first = append(m.first, int64(len(m.src)))
		for unit := 0; unit < a.Units() && wanted(step); unit++ {
			order := a.List[unit*a.ListStride:][:a.Count[unit]]
			for _, block := range order[min(step*micro, len(order)):min((step+1)*micro, len(order))] {
				at := cuda.Ptr(int(a.Table[unit*a.TableStride+int(block)]) * size)
				m.src, m.dst = append(m.src, slab+at), append(m.dst, pool+at)
				m.owner = append(m.owner, int32(unit))
			}
		}
	}
	m.first = append(m.first, int64(len(m.src)))
	return m
}

func TestPSAPipeline(t *testing.T) {
	for _, config := range []Config{{}, {Late: true}, {Late: true, Seed: 5}} {
		g := newFixture(t, config)
		const micro = 4
		a := g.batch(4, 2, 64, 16, 500, 133, 16)
		g.choose(a, a.TableStride, false)
		size := 2 * a.BlockTokens * a.Dim * 2
		slab := pinned(g, download[byte](g, a.args.Pool, len(a.Pool)*2)) // every block is a miss
		for _, epsilon := range []float64{0.5, 1} {
			p, args := g.psa(a, micro, epsilon)
			want, steps := p.Run(), (a.TableStride+micro-1)/micro
			for _, depth := range []int32{1, 2, 5} {
				args.Pool = g.device(len(a.Pool) * 2)
				all := a.misses(micro, slab.Ptr(), args.Pool, func(int) bool { return true })
				loaded := int32(-1)
				g.must(g.Launch(&cuda.PSAPipelineArgs{PSA: args, LoadFirst: pinned(g, all.first).Ptr(),
					Src: upload(g, all.src), Dst: upload(g, all.dst), Owner: upload(g, all.owner),
					BlockBytes: int64(size), Microbatches: int32(steps), Depth: depth, Loaded: &loaded}, 0))
				what := fmt.Sprintf("%+v, epsilon %g, depth %d", config, epsilon, depth)
				g.checkPSA(what, want, a, args)
				needed := (slices.Max(want.Used) + micro - 1) / micro
				if loaded < needed || loaded > needed+depth || epsilon < 1 && int(loaded) == steps &&
					depth == 1 {
					t.Errorf("%s: %d microbatches loaded, %d needed of %d", what, loaded, needed, steps)
				}
				// With one microbatch ahead, what a unit did not get to stays in host memory.
				for unit, used := range want.Used {
					for i := used; depth == 1 && i < a.Count[unit]; i++ {
						slot := a.Table[unit*a.TableStride+int(a.List[unit*a.ListStride+int(i)])]
						if b := download[byte](g, args.Pool+cuda.Ptr(int(slot)*size), 1); b[0] != poison {
							t.Fatalf("%s: entry %d of unit %d was loaded, %d were used", what, i, unit, used)
						}
					}
				}
			}
		}
	}
}

func TestPSABySlots(t *testing.T) {
	g := newFixture(t, Config{})
	a := g.batch(4, 2, 64, 16, 177, 100)
	g.choose(a, a.TableStride, false)
	p, args := g.psa(a, 3, 0.9)
	args.Table, args.Slot, args.Steps = 0, upload(g, slotsOf(a)), int32(a.TableStride)
	g.must(g.Launch(args, 0))
	g.checkPSA("slots for the order", p.Run(), a, args)
}

// Microbatches without loads share a launch, loads of microbatches that no list reaches are only
// started, and a call goes on to the next without waiting.
func TestPSAPipelineSharesLaunches(t *testing.T) {
	for _, config := range []Config{{}, {Late: true}, {Late: true, Seed: 7}} {
		for _, own := range []bool{false, true} {
			g := newFixture(t, config)
			const micro = 2
			a := g.batch(4, 2, 64, 16, 500, 133, 16)
			g.choose(a, a.TableStride, false)
			size := 2 * a.BlockTokens * a.Dim * 2
			slab := pinned(g, download[byte](g, a.args.Pool, len(a.Pool)*2))
			steps := (a.TableStride + micro - 1) / micro
			var loads cuda.Stream
			if own {
				loads = g.stream()
			}
			type call struct {
				args  *cuda.PSAArgs
				want  reference.PSAResult
				spare cuda.Ptr // what only the last microbatch loads
				begun int32
				run   cuda.PSAPipelineArgs
			}
			calls := make([]call, 3)
			for i := range calls {
				c := &calls[i]
				var p *reference.PSA
				p, c.args = g.psa(a, micro, 1)
				c.want, c.spare, c.args.Pool = p.Run(), g.device(size), g.device(len(a.Pool)*2)
				// The first call's loads begin at once, the others' later.
				late := a.misses(micro, slab.Ptr(), c.args.Pool, func(step int) bool { return step%3 == i })
				now := a.misses(micro, slab.Ptr(), c.args.Pool, func(step int) bool { return step%3 != i })
				first := append(late.first, int64(len(late.src))+1)
				src, dst := append(late.src, slab.Ptr()), append(late.dst, c.spare)
				g.must(g.Launch(&cuda.FlashH2DArgs{Src: upload(g, now.src), Dst: upload(g, now.dst),
					Count: int64(len(now.src)), BlockBytes: int64(size)}, 0))
				c.run = cuda.PSAPipelineArgs{PSA: c.args, LoadFirst: pinned(g, first).Ptr(),
					Src: upload(g, src), Dst: upload(g, dst), BlockBytes: int64(size),
					Microbatches: int32(steps + 1), Depth: 2, Loaded: &c.begun, Loads: loads,
					Reached: int32(steps)}
			}
			for i := range calls {
				g.must(g.Launch(&calls[i].run, 0))
			}
			g.must(g.StreamSync(0))
			last := calls[len(calls)-1] // those before are in front of its loads
			if !own && int(last.begun) > steps && g.peek(last.spare) == poison {
				t.Errorf("%+v: the stream did not wait for the loads that no list reached", config)
			}
			for i, c := range calls {
				what := fmt.Sprintf("%+v, own stream %v, call %d", config, own, i)
				if int(c.begun) < steps {
					t.Fatalf("%s: %d of %d microbatches", what, c.begun, steps)
				}
				g.checkPSA(what, c.want, a, c.args)
				if first := g.peek(c.spare); (first != poison) != (int(c.begun) > steps) {
					t.Errorf("%s: %d of %d microbatches, the last one's block begins with %#x", what, c.begun,
						steps+1, first)
				}
			}
		}
	}
}

// peek reads a byte of device memory after the work on stream 0, without other synchronisation.
func (g *fixture) peek(p cuda.Ptr) byte {
	g.t.Helper()
	to := g.host(1)
	g.must(g.Launch(&cuda.MemcpyArgs{Dst: to.Ptr(), Src: p, Bytes: 1}, 0))
	g.must(g.StreamSync(0))
	return cuda.Slice[byte](to)[0]
}
