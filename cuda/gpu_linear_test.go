//go:build gpu

package cuda

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

func TestGPULinear(t *testing.T) {
	onGPU(t, func(g *gpu) {
		if err := g.LinearOpen("/nowhere/libcublas.so"); !errors.Is(err, NoCuBLAS) {
			t.Errorf("a cuBLAS that is not there: %v", err)
		}
		for _, c := range []struct{ tokens, in, out int }{{1, 64, 96}, {33, 256, 40}, {128, 96, 128}} {
			x, xf := g.normal(c.tokens*c.in, 1)
			w, wf := g.normal(c.out*c.in, 0.1)
			want := make([]float64, c.tokens*c.out)
			for i := range want {
				for j := range c.in {
					want[i] += xf[i/c.out*c.in+j] * wf[i%c.out*c.in+j]
				}
			}
			y := g.device(int64(len(want)) * 2)
			g.must(g.Launch(&LinearArgs{X: upload(g, x), W: upload(g, w), Y: y, Tokens: int32(c.tokens),
				In: int32(c.in), Out: int32(c.out)}, 0))
			g.near(fmt.Sprintf("linear %+v", c), Floats(download[Half](g, y, len(want))), want, c.out,
				1e-3, 1e-3)
		}
	})
}

func TestGPUBenchReturnsSamples(t *testing.T) {
	onGPU(t, func(g *gpu) {
		buffer := g.device(1 << 28)
		fill := &MemsetArgs{Dst: buffer, Bytes: 1 << 28, Value: 1}
		for clock := EventClock; clock <= SubmitClock; clock++ {
			samples, err := g.Bench(Bench{Calls: []Operation{fill}, Warmup: 1, Repeats: 5, Clock: clock,
				FlushL2: true})
			g.must(err)
			if len(samples) != 5 || slices.Min(samples) <= 0 || slices.Max(samples) > 100 {
				t.Errorf("clock %d: %v ms", clock, samples)
			}
			// 256 MiB cannot be written in less than 40 us on any GPU of today; submitting takes
			// less.
			if clock != SubmitClock && slices.Min(samples) < 0.04 {
				t.Errorf("clock %d: %v ms is faster than memory", clock, samples)
			}
		}
		_, ms, runs, err := g.BenchOverlapped(Bench{Calls: []Operation{&EmptyArgs{}}, Repeats: 50,
			Clock: WallClock}, fill)
		g.must(err)
		if runs < 1 || ms <= 0 {
			t.Errorf("overlapped: %d runs of %g ms", runs, ms)
		}
		if _, err := g.Bench(Bench{Calls: []Operation{&DecodeArgs{}}, Repeats: 1}); !errors.Is(err,
			BadArgument) {
			t.Errorf("an operation that fails: %v", err)
		}
	})
}
