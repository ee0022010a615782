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
	g.near(what, cuda.Floats(download[cuda.Half](g, args.Out, len(a.Q))), want.Out)
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

func TestPSABySlots(t *testing.T) {
	g := newFixture(t, Config{})
	a := g.batch(4, 2, 64, 16, 177, 100)
	g.choose(a, a.TableStride, false)
	p, args := g.psa(a, 3, 0.9)
	args.Table, args.Slot, args.Steps = 0, upload(g, slotsOf(a)), int32(a.TableStride)
	g.must(g.Launch(args, 0))
	g.checkPSA("slots for the order", p.Run(), a, args)
}
