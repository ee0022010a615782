package dsa

import (
	"slices"
	"sort"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// Law 7: a selection is a subset of existing blocks, of size min(k, existing),
// without repeats; and it is the top k of a naive sort.
func TestLaw7TopKAgainstSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(1, 300).Draw(t, "k")
		n := rapid.IntRange(1, 400).Draw(t, "n")
		picker := TopK{k}.Picker()
		levels := rapid.IntRange(1, 60).Draw(t, "levels") // few levels: many ties
		shift := float32(0)
		for range rapid.IntRange(1, 4).Draw(t, "steps") {
			shift += float32(rapid.IntRange(-40, 40).Draw(t, "shift"))
			scores := make([]float32, n)
			for i := range scores {
				scores[i] = shift + float32(rapid.IntRange(-levels, levels).Draw(t, "score"))
			}
			got, used := picker.Pick(&View{Critical: scores}, nil)
			if used != len(got) {
				t.Fatalf("attends to %d of %d", used, len(got))
			}
			if want := sorted(scores, k); !slices.Equal(got, want) {
				t.Fatalf("k=%d of %v: got %v, want %v", k, scores, got, want)
			}
		}
	})
}

// sorted picks the top k by a naive stable sort.
func sorted(scores []float32, k int) []uint16 {
	order := make([]uint16, len(scores))
	for i := range order {
		order[i] = uint16(i)
	}
	sort.SliceStable(order, func(i, j int) bool { return scores[order[i]] > scores[order[j]] })
	order = order[:min(k, len(order))]
	slices.Sort(order)
	return order
}

// A cycle holds exactly what the policy picked, and says how each step follows
// from the one before it on the cycle.
func TestStreamReplaysThePolicy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 150).Draw(t, "n")
		steps := rapid.IntRange(1, 12).Draw(t, "steps")
		views := make([]*View, steps)
		for i := range views {
			row := func(name string) []float32 {
				return rapid.SliceOfN(rapid.Float32Range(0, 1), n, n).Draw(t, name)
			}
			views[i] = &View{Critical: row("critical"), Score: [][]float32{row("score")}, Skew: 3}
		}
		var policy ByHead = TopK{rapid.IntRange(1, 90).Draw(t, "k")}
		if rapid.Bool().Draw(t, "psa") {
			policy = PSA{Epsilon: rapid.Float64Range(0.01, 0.99).Draw(t, "epsilon"),
				Microbatch: rapid.IntRange(1, 20).Draw(t, "m"), Ahead: rapid.IntRange(0, 1).Draw(t, "ahead")}
		}
		s := Record(n, steps, policy, func(i int) *View { return views[i] })
		for i := range steps {
			want, used := policy.Picker().Pick(views[i], nil)
			row := s.At(i)
			if !slices.Equal(row.Next, want) || row.Used != used || s.Used(i) != used {
				t.Fatalf("step %d: %v, %d used, policy picks %v, %d used", i, row.Next, row.Used, want, used)
			}
			follow(t, s.At((i+steps-1)%steps).Next, row)
			again(t, s, i)
		}
	})
}

// follow checks how a row follows from the one before by definition.
func follow(t interface{ Fatalf(string, ...any) }, prev []uint16, row kv.Picks) {
	var added, came, dropped []uint16
	for i, b := range row.Next {
		if !slices.Contains(prev, b) {
			added, came = append(added, uint16(i)), append(came, b)
		}
	}
	for _, b := range prev {
		if !slices.Contains(row.Next, b) {
			dropped = append(dropped, b)
		}
	}
	if !slices.Equal(row.Added, added) || !slices.Equal(row.Came, came) ||
		!slices.Equal(row.Dropped, dropped) {
		t.Fatalf("%v after %v: added %v (%v), dropped %v", row.Next, prev, row.Added, row.Came,
			row.Dropped)
	}
}

// again checks by definition when the candidates of a step were last picked.
func again(t interface{ Fatalf(string, ...any) }, s *Cycle, step int) {
	var lanes [3]uint64
	var others []uint16
	came, _ := s.Turn(step + s.Steps)
	for _, b := range came {
		gap := 1
		for gap <= kv.Lookback && !slices.Contains(s.Next((step+2*kv.Lookback*s.Steps-gap)%s.Steps), b) {
			gap++
		}
		if gap > kv.Lookback {
			others = append(others, b)
		} else {
			lanes[(gap-2)/4] += 1 << ((gap - 2) % 4 * 16)
		}
	}
	if last, old := s.Again(step); *last != lanes || !slices.Equal(old, others) {
		t.Fatalf("step %d: %x again, others %v, want %x and %v", step, *last, old, lanes, others)
	}
}

// flat scores every block the same in every step.
type flat struct{}

func (flat) Steps() int              { return 8 }
func (flat) Fill(_, n int, s *Sheet) { s.Critical = make([]float32, 8*n) }
func (flat) Critical(*Sheet) func(family, n, b, t int) float32 {
	return func(_, _, b, _ int) float32 { return float32(b) }
}
func (flat) Classes() int              { return 1 }
func (flat) Skew(int) float64          { return 1 }
func (flat) Class(layer, head int) int { return 0 }

func TestGridServesEveryContext(t *testing.T) {
	l := NewLibrary(flat{}, TopK{60}, Setting{Digest: CuboidMean, Sinks: 2, Window: 2}, 2)
	for n := range 5000 {
		g := l.Grid(n)
		if n <= 60 {
			if g != -1 {
				t.Fatalf("%d candidates: grid %d, all are selected", n, g)
			}
			continue
		}
		if c := l.grid[g]; c > n || float64(n-c) > 0.0625*float64(n) {
			t.Fatalf("%d candidates are served by a cycle of %d", n, c)
		}
	}
	if a, b := l.Cycle(Cursor{Family: 1}, 3), l.Cycle(Cursor{Family: 1}, 3); a != b {
		t.Fatal("a cycle was made twice")
	}
}

func TestCursorIsStableAndInRange(t *testing.T) {
	l := NewLibrary(flat{}, TopK{60}, Setting{Digest: CuboidMean, Sinks: 2, Window: 2}, 5)
	seen := map[Cursor]int{}
	for r := range 40 {
		for g := range 25 {
			c := l.CursorOf(7, r, g/5, g%5, 5)
			if c != l.CursorOf(7, r, g/5, g%5, 5) || int(c.Family) >= 5 || int(c.Phase) >= 8 {
				t.Fatalf("cursor %+v", c)
			}
			seen[c]++
		}
	}
	if len(seen) != 40 {
		t.Fatalf("%d of 40 places used", len(seen))
	}
}

// drift returns 64 rows of 400 scores that move as attention scores do.
func drift() [][]float32 {
	rng := des.Rand(1, "drift")
	mu, rows := make([]float32, 400), make([][]float32, 64)
	for i := range mu {
		mu[i] = float32(rng.NormFloat64())
	}
	for t := range rows {
		rows[t] = make([]float32, len(mu))
		for i := range mu {
			rows[t][i] = mu[i] + 0.3*float32(rng.NormFloat64())
		}
	}
	return rows
}

func BenchmarkTopK(b *testing.B) {
	rows, picker, dst, v := drift(), TopK{60}.Picker(), make([]uint16, 0, 64), &View{}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		v.Critical = rows[i%len(rows)]
		dst, _ = picker.Pick(v, dst)
	}
}

func TestPickAllocatesNothing(t *testing.T) {
	rows, picker, dst, v, i := drift(), TopK{60}.Picker(), make([]uint16, 0, 64), &View{}, 0
	if n := testing.AllocsPerRun(200, func() {
		v.Critical = rows[i%len(rows)]
		dst, _ = picker.Pick(v, dst)
		i++
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

// Making cycles beforehand leaves none to be made later, and gives the same cycles as on demand.
func TestLibraryMakesStreamsBeforehand(t *testing.T) {
	setting := Setting{Digest: CuboidMean, Sinks: 2, Window: 2}
	l, other := NewLibrary(flat{}, TopK{60}, setting, 3), NewLibrary(flat{}, TopK{60}, setting, 3)
	l.Make(50, 100, func(n int, f func(i int)) {
		for i := range n {
			f(i)
		}
	}) // below the first grid point: all are selected
	made := len(l.cycles.kept)
	if want := 3 * (l.Grid(100) + 1); made != want {
		t.Fatalf("%d cycles made, want %d", made, want)
	}
	for grid := range l.Grid(100) + 1 {
		for family := range uint16(3) {
			c := Cursor{Family: family}
			for step := range l.Steps() {
				if got, want := l.Cycle(c, grid).At(step),
					other.Cycle(c, grid).At(step); !slices.Equal(got.Next, want.Next) || got.Used != want.Used {
					t.Fatalf("family %d, grid %d, step %d: %+v, on demand %+v", family, grid, step, got, want)
				}
			}
		}
	}
	if len(l.cycles.kept) != made {
		t.Errorf("%d cycles, %d made beforehand", len(l.cycles.kept), made)
	}
}
