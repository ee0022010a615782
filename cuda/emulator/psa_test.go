package emulator

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
)

func (g *fixture) psa(a *attention, micro int, epsilon float64) (*naivePSA, *cuda.PSAArgs) {
	epsilon = float64(float32(epsilon))
	p := &naivePSA{Shape: a.Shape, pagedCache: a.pagedCache, Q: a.Q, Order: a.List,
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

// checkPSA compares outputs and stops. On a GPU a unit whose weight came within rounding of epsilon
// may stop elsewhere.
func (g *fixture) checkPSA(what string, want psaResult, a *attention,
	args *cuda.PSAArgs) (stopped int) {
	g.t.Helper()
	out := cuda.Floats(download[cuda.Half](g, args.Out, len(a.Q)))
	used, rows := download[int32](g, args.Used, a.Units()), a.Group()*a.Dim
	if done := download[int32](g, args.Done, a.Units()); slices.Min(done) != 1 ||
		slices.Max(done) != 1 {
		g.t.Errorf("%s: done %v", what, done)
	}
	if flag := download[int32](g, args.Flag, 1)[0]; g.emulated != nil && flag != 1 {
		g.t.Errorf("%s: the flag is %d", what, flag)
	}
	for unit, n := range want.Used {
		if g.emulated == nil && want.Margin[unit] < 2e-3 {
			copy(out[unit*rows:(unit+1)*rows], want.Out[unit*rows:])
			continue
		}
		if used[unit] != n {
			g.t.Fatalf("%s: unit %d used %d of %d blocks, want %d", what, unit, used[unit],
				a.Count[unit], n)
		}
		if n < a.Count[unit] {
			stopped++
		}
	}
	g.close(what, out, want.Out, a.Dim)
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
				stopped += g.runPSA(fmt.Sprintf("%+v, micro %d, epsilon %g", c, micro, epsilon), a, micro,
					epsilon)
			}
		}
	}
	if stopped < 20 {
		t.Errorf("only %d units stopped early: the test proves little", stopped)
	}
}

// runPSA runs all in one call, then one call a microbatch: the state between calls must change
// nothing.
func (g *fixture) runPSA(what string, a *attention, micro int, epsilon float64) (stopped int) {
	g.t.Helper()
	p, args := g.psa(a, micro, epsilon)
	want, steps := p.Run(), (a.TableStride+micro-1)/micro
	args.Steps = int32(steps)
	g.must(g.Launch(args, 0))
	stopped = g.checkPSA(what, want, a, args)
	for step := range steps {
		args.First, args.Steps = int32(step), 1
		g.must(g.Launch(args, 0))
	}
	g.checkPSA(what+", stepwise", want, a, args)
	return stopped
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

func TestPSABySlots(t *testing.T) { newFixture(t, Config{}).psaBySlots(4, 2, 64, 16, 177, 100) }

func (g *fixture) psaBySlots(group, kvHeads, dim, blockTokens int, contexts ...int) {
	a := g.batch(group, kvHeads, dim, blockTokens, contexts...)
	g.choose(a, a.TableStride, false)
	p, args := g.psa(a, 3, 0.9)
	args.Steps = int32(a.TableStride)
	g.must(g.Launch(args, 0))
	want := download[cuda.Half](g, args.Out, len(a.Q))
	args.Table, args.Slot = 0, upload(g, g.slotsOf(a))
	g.must(g.Launch(args, 0))
	g.checkPSA("slots for the order", p.Run(), a, args)
	if !slices.Equal(download[cuda.Half](g, args.Out, len(a.Q)), want) {
		g.t.Error("PSA differs with slots for the order")
	}
}
