package dsa

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/sim/des"
)

// rough scores blocks anew in every step, each query head's about its KV head's.
type rough struct{ seed uint64 }

func (s rough) Steps() int { return 8 }
func (s rough) at(what uint64, family, t, b int) float32 {
	return 4 * float32(des.Hash(s.seed, what, uint64(family), uint64(t), uint64(b))>>40) / (1 << 24)
}
func (s rough) Fill(family, n int, sheet *Sheet) {
	queries, kept := max(1, sheet.Queries), sheet.Sinks+sheet.Window
	sheet.Critical, sheet.Score, sheet.Kept, sheet.Skew = nil, make([][]float32, queries), nil, nil
	for i := range sheet.Steps {
		t := (sheet.First + i) % s.Steps()
		for b := range n {
			sheet.Critical = append(sheet.Critical, s.at(0, family, t, b))
			for q := range queries {
				sheet.Score[q] = append(sheet.Score[q], s.at(0, family, t, b)+s.at(1+uint64(q), family, t, b))
			}
		}
		for b := range kept {
			sheet.Kept = append(sheet.Kept, s.at(99, family, t, b))
		}
		sheet.Skew = append(sheet.Skew, 1+0.1*float32(t))
	}
}
func (s rough) Critical(*Sheet) func(family, n, b, t int) float32 {
	return func(family, n, b, t int) float32 { return s.at(0, family, t, b) }
}
func (s rough) Classes() int              { return 3 }
func (s rough) Skew(class int) float64    { return 0.5 * float64(1+class) }
func (s rough) Class(layer, head int) int { return (layer + head) % 3 }

// A library's decision for a layer, and the share that it reports, follow from the scores of the
// layer's heads in the step, however far its rankings reached before.
func TestLayerDecidesFromTheScoresOfItsHeads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scores := rough{uint64(rapid.IntRange(1, 5).Draw(t, "seed"))}
		setting := Setting{Sinks: rapid.IntRange(0, 2).Draw(t, "sinks"), Window: 1,
			Queries: rapid.IntRange(1, 3).Draw(t, "queries")}
		var policy ByLayer = InfiniGen{Margin: rapid.Float64Range(0, 4).Draw(t, "margin"),
			Most: rapid.Float64Range(0.05, 1).Draw(t, "most")}
		if rapid.Bool().Draw(t, "psa") {
			policy = PSALayer{PSA{Epsilon: rapid.Float64Range(0.02, 0.999).Draw(t, "epsilon"),
				Microbatch: rapid.IntRange(1, 9).Draw(t, "m"), Ahead: rapid.IntRange(0, 1).Draw(t, "ahead")}}
		}
		l := NewLibrary(scores, policy, setting, 2)
		if !l.ByLayer() {
			t.Fatal("decides head by head")
		}
		heads := rapid.IntRange(1, 5).Draw(t, "heads")
		for request := range 2 {
			layer := l.Layer(7, request, 1, heads)
			for range 3 {
				grid, steps := l.Grid(rapid.IntRange(1, 80).Draw(t, "candidates")),
					rapid.IntRange(1, 20).Draw(t, "steps")
				views := make([]*View, heads)
				for h := range views {
					c := l.CursorOf(7, request, 1, h, heads)
					sheet := Sheet{Setting: setting, Weighs: true,
						First: (int(c.Phase) + steps) % scores.Steps(), Steps: 1}
					scores.Fill(int(c.Family), l.grid[grid], &sheet)
					views[h] = &View{}
					sheet.View(0, scores.Skew(int(c.Class)), views[h])
				}
				used, picked := layer.Decide(grid, steps)
				if u, p := agree(policy, views, 0); u != used || p != picked {
					t.Fatalf("attends to %d and loads %d, want %d and %d", used, picked, u, p)
				}
				for h, v := range views {
					if want := inOrder(v.Critical)[:picked]; !slices.Equal(layer.Order(h, picked), want) {
						t.Fatalf("head %d picks %v, want %v", h, layer.Order(h, picked), want)
					}
					got, want := layer.Recall(h), v.Recall(layer.Order(h, used))
					if math.Abs(float64(got.Share-want.Share)) > 1e-5 ||
						math.Abs(float64(got.Missed2-want.Missed2)) > 1e-5 {
						t.Fatalf("head %d holds %+v, want %+v", h, got, want)
					}
				}
			}
		}
	})
}
