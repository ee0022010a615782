//go:build gpu

package cuda

import (
	"fmt"
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
	out := Floats(download[Half](g, args.Out, len(a.Q)))
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
