//go:build gpu

package emulator

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
)

// onGPU runs a test on the library's thread. A machine without library or GPU fails it: these tests
// are only built to run on one.
func onGPU(t *testing.T, f func(g *fixture)) {
	t.Helper()
	lib, err := cuda.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer lib.Close()
	err = lib.Do(func(s *cuda.Session) error {
		if err := s.Init(0); err != nil {
			return err
		}
		g := &fixture{machine: s, t: t, r: rand.New(rand.NewPCG(20, 26))}
		f(g)
		if err := s.DeviceSync(); err != nil {
			return err
		}
		for _, free := range g.release {
			if err := free(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestGPUDecode(t *testing.T) {
	onGPU(t, func(g *fixture) {
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
			g.checkDecode("dense, "+what, a)
			for _, k := range []int{1, 5, 64} {
				g.choose(a, k, k == 5)
				g.checkDecode(fmt.Sprintf("sparse, k %d, %s", k, what), a)
			}
		}
	})
}

// Contexts of one block and long ones: runs of blocks that end one unit, hold many whole ones,
// or are a small part of one; more requests than lanes.
func TestGPUDecodeUnequal(t *testing.T) {
	onGPU(t, func(g *fixture) {
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
			g.checkDecode(fmt.Sprintf("group %d, head %d, block %d, contexts %v", c.group, c.dim, c.block,
				c.contexts), g.batch(c.group, c.kvHeads, c.dim, c.block, c.contexts...))
		}
	})
}

// More CTAs than the weights of one unit's pieces have shared memory for: the pieces of nine
// requests, eight of which are short.
func TestGPUDecodeManyPieces(t *testing.T) {
	onGPU(t, func(g *fixture) {
		a := g.batch(8, 1, 64, 16, append([]int{38400}, slices.Repeat([]int{1}, 8)...)...)
		g.checkDecode("256 CTAs a request, nearly all of one of nine", a, 256)
	})
}

// A workspace zeroed once serves one batch after another, as steps of a server: small, large,
// dense, of lists.
func TestGPUDecodeWorkspaceOfManyBatches(t *testing.T) {
	onGPU(t, func(g *fixture) {
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
				a.args.Workspace, a.args.Out = workspace, g.device(2*len(want))
				g.must(g.Launch(&a.args, 0))
				g.close(fmt.Sprintf("round %d, batch %d", round, i),
					cuda.Floats(download[cuda.Half](g, a.args.Out, len(want))), want, a.Dim)
			}
		}
	})
}

// A head may have scores far from zero and far apart: the running maximum must hold them.
func TestGPUDecodeWithExtremeScores(t *testing.T) {
	onGPU(t, func(g *fixture) {
		a := g.batch(4, 1, 128, 32, 200)
		a.Scale, a.args.Scale = 3, 3 // scores of some +-50
		g.checkDecode("extreme", a)
	})
}

func TestGPUPSA(t *testing.T) {
	onGPU(t, func(g *fixture) {
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
					stopped += g.runPSA(fmt.Sprintf("group %d, head %d, %d units, micro %d, epsilon %g",
						c.group, c.dim, a.Units(), micro, epsilon), a, micro, epsilon)
				}
			}
		}
		if stopped < 20 && !testing.Short() {
			t.Errorf("only %d units stopped early: the suite proves little", stopped)
		}
	})
}

func TestGPUDecodeBySlotsAndPages(t *testing.T) {
	onGPU(t, func(g *fixture) { g.decodeBySlotsAndPages(4, 2, 128, 32, 777, 5, 64) })
}

func TestGPUPSABySlots(t *testing.T) {
	onGPU(t, func(g *fixture) { g.psaBySlots(4, 2, 128, 32, 777, 300) })
}
