package reference

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func newPSA(r *rand.Rand, epsilon float64, micro int) *PSA {
	s := Shape{Batch: 2, HeadsQ: 8, HeadsKV: 2, Dim: 8}
	p := &PSA{Shape: s, Cache: scattered(r, s, 4, 61, 33), Q: random(r, s.Batch*s.HeadsQ*s.Dim),
		Scale: 0.5, Epsilon: epsilon, Micro: micro}
	p.OrderStride = p.TableStride
	for unit := range s.Units() {
		row := make([]int32, p.OrderStride)
		for i := range row {
			row[i] = int32(i)
		}
		p.Order, p.Count = append(p.Order, row...), append(p.Count, int32(p.Blocks(unit/s.HeadsKV)))
	}
	return p
}

func TestPSAWithFullThresholdIsDense(t *testing.T) {
	p := newPSA(rand.New(rand.NewPCG(4, 4)), 1, 3)
	dense := Decode{Shape: p.Shape, Cache: p.Cache, Q: p.Q, Scale: p.Scale}
	want, _ := dense.Run()
	r := p.Run()
	near(t, "out", r.Out, want)
	if !slices.Equal(r.Used, p.Count) {
		t.Errorf("used %v of %v", r.Used, p.Count)
	}
}

func TestPSAStopsBetweenAndAttendsToAPrefix(t *testing.T) {
	p := newPSA(rand.New(rand.NewPCG(5, 5)), 0.7, 2)
	r := p.Run()
	stopped := false
	for u, used := range r.Used {
		stopped = stopped || used < p.Count[u]
		if used%2 != 0 && used != p.Count[u] {
			t.Errorf("unit %d used %d blocks: not whole microbatches", u, used)
		}
	}
	if !stopped {
		t.Fatal("no unit stopped early: the case proves nothing")
	}
	prefix := Decode{Shape: p.Shape, Cache: p.Cache, Q: p.Q, Scale: p.Scale, List: p.Order,
		ListStride: p.OrderStride, Count: r.Used}
	want, _ := prefix.Run()
	near(t, "out", r.Out, want)
}

// The paper's Figure 4: block weights and microbatches of four; the weight passes 0.91 with the
// second microbatch and 0.95 with the third.
func TestPSAFigure4(t *testing.T) {
	weights := []float64{98, 84, 68, 55, 31, 22, 15, 10, 8.2, 6.1, 4.9, 4.3, 3, 2, 1, 0.5}
	for _, c := range []struct {
		epsilon float64
		used    int32
	}{{0.3, 4}, {0.8, 8}, {0.9, 12}, {0.999, 16}} {
		p := PSA{Shape: Shape{1, 1, 1, 1}, Micro: 4, Scale: 1, Epsilon: c.epsilon, Q: []float64{1},
			OrderStride: len(weights), Count: []int32{int32(len(weights))}}
		p.BlockTokens, p.TableStride, p.Context = 1, len(weights), []int32{int32(len(weights))}
		for i, w := range weights {
			p.Order, p.Table = append(p.Order, int32(i)), append(p.Table, int32(i))
			p.Pool = append(p.Pool, math.Log(w), 1)
		}
		if r := p.Run(); r.Used[0] != c.used {
			t.Errorf("epsilon %g: %d blocks, want %d", c.epsilon, r.Used[0], c.used)
		}
	}
}
