package dsa

import (
	"math"
	"testing"
)

// falling scores blocks one below the other, the same in every step.
type falling struct{}

func (falling) Steps() int { return 8 }
func (falling) Fill(_, n int, s *Sheet) {
	s.Critical, s.Score = nil, make([][]float32, 1)
	s.Kept, s.Skew = make([]float32, s.Steps*(s.Sinks+s.Window)), make([]float32, s.Steps)
	for t := range s.Steps {
		s.Skew[t] = 1
		for b := range n {
			s.Critical, s.Score[0] = append(s.Critical, -float32(b)), append(s.Score[0], -float32(b))
		}
	}
}
func (falling) Critical(*Sheet) func(family, n, b, t int) float32 {
	return func(_, _, b, _ int) float32 { return -float32(b) }
}
func (falling) Classes() int              { return 2 }
func (falling) Skew(class int) float64    { return 0.01 * float64(1+class) }
func (falling) Class(layer, head int) int { return layer % 2 }

// What a library's selections hold is the sum over what they attend to, of each
// class by its own skew, also where the selection does not depend on the class.
func TestLibraryRecall(t *testing.T) {
	for _, policy := range []Policy{TopK{20}, PSA{Epsilon: 0.9, Microbatch: 7, Ahead: 1}} {
		l := NewLibrary(falling{}, policy, Setting{Digest: CuboidMean, Sinks: 1, Window: 2}, 2)
		for layer := range 2 {
			c := l.CursorOf(1, 3, layer, 0, 1)
			grid := l.Grid(200)
			cycle := l.Cycle(c, grid)
			for step, got := range l.Recall(c, grid) {
				held, all := 3.0, 3.0
				for b := range cycle.Candidates {
					w := math.Exp(-falling{}.Skew(layer) * float64(b))
					if all += w; b < cycle.Used(step) {
						held += w
					}
				}
				missed := 1 - held/all
				if math.Abs(float64(got.Share)-held/all) > 1e-5 ||
					math.Abs(float64(got.Missed2)-missed*missed) > 1e-5 {
					t.Fatalf("%T, layer %d, step %d: %d of %d hold %g, want %g", policy, layer, step,
						cycle.Used(step), cycle.Candidates, got, held/all)
				}
			}
		}
	}
}
