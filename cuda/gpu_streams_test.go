//go:build gpu

package cuda

import "testing"

func TestGPUStreamsAreKept(t *testing.T) {
	onGPU(t, func(g *gpu) {
		create := func(high bool) Stream {
			s, err := g.StreamCreate(high)
			g.must(err)
			return s
		}
		first, second, low := create(true), create(true), create(false)
		if first == second || first == low || second == low {
			t.Fatalf("streams %v, %v and %v are in use at once", first, second, low)
		}
		g.must(g.StreamDestroy(second))
		g.must(g.StreamDestroy(first))
		if again := create(true); again != first {
			t.Errorf("the next stream is %v, not the first one made, %v", again, first)
		}
		other := create(false)
		if other == first || other == second || other == low {
			t.Errorf("a stream of low priority is %v, in use or of high priority", other)
		}
		for _, s := range []Stream{first, low, other} {
			g.must(g.StreamDestroy(s))
		}
		if err := g.StreamDestroy(first); err == nil {
			t.Error("a stream was given back twice")
		}
	})
}
