package dsa

import (
	"slices"
	"sort"
	"testing"

	"pgregory.net/rapid"

	"sparseserve/sim/des"
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
			got := slices.Clone(picker.Pick(scores, nil))
			slices.Sort(got)
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

// A stream holds exactly what the policy picked, blocks that stay keep their
// position, and Diff marks exactly the positions that change on the circle.
func TestStreamReplaysThePolicy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 150).Draw(t, "n")
		k := rapid.IntRange(1, 90).Draw(t, "k")
		steps := rapid.IntRange(1, 12).Draw(t, "steps")
		rows := make([][]float32, steps)
		for i := range rows {
			rows[i] = rapid.SliceOfN(rapid.Float32Range(0, 1), n, n).Draw(t, "row")
		}
		s := Record(n, steps, TopK{k}, func(i int) []float32 { return rows[i] })
		for i := range steps {
			want := sorted(rows[i], k)
			got := slices.Clone(s.At(i))
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Fatalf("step %d: %v, policy picks %v", i, got, want)
			}
			prev := s.At((i + steps - 1) % steps)
			for p, b := range s.At(i) {
				changed := s.Diff(i)[p/64]&(1<<(p%64)) != 0
				if changed != (prev[p] != b) {
					t.Fatalf("step %d position %d: diff %v, ids %d -> %d", i, p, changed, prev[p], b)
				}
				if i > 0 && changed && slices.Contains(s.At(i), prev[p]) {
					t.Fatalf("step %d: block %d stays selected but moved", i, prev[p])
				}
			}
		}
	})
}

// flat scores every block the same in every step.
type flat struct{}

func (flat) Steps() int                   { return 8 }
func (flat) Fill(_, n int, dst []float32) { clear(dst[:8*n]) }

func TestGridServesEveryContext(t *testing.T) {
	l := NewLibrary(flat{}, TopK{60}, 2)
	for n := range 5000 {
		g := l.Grid(n)
		if n <= 60 {
			if g != -1 {
				t.Fatalf("%d candidates: grid %d, all are selected", n, g)
			}
			continue
		}
		if c := l.grid[g]; c > n || float64(n-c) > 0.0625*float64(n) {
			t.Fatalf("%d candidates are served by a stream of %d", n, c)
		}
	}
	if a, b := l.Stream(1, 3), l.Stream(1, 3); a != b {
		t.Fatal("a stream was made twice")
	}
}

func TestCursorIsStableAndInRange(t *testing.T) {
	l := NewLibrary(flat{}, TopK{60}, 5)
	seen := map[Cursor]int{}
	for r := range 40 {
		for g := range 25 {
			c := l.CursorOf(7, r, g)
			if c != l.CursorOf(7, r, g) || int(c.Family) >= 5 || int(c.Phase) >= 8 {
				t.Fatalf("cursor %+v", c)
			}
			seen[c]++
		}
	}
	if len(seen) != 40 {
		t.Fatalf("%d of 40 places used", len(seen))
	}
}

// drift returns 64 rows of 400 scores that move as those of attention do.
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
	rows, picker, dst := drift(), TopK{60}.Picker(), make([]uint16, 0, 64)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		dst = picker.Pick(rows[i%len(rows)], dst)
	}
}

func TestPickAllocatesNothing(t *testing.T) {
	rows, picker, dst, i := drift(), TopK{60}.Picker(), make([]uint16, 0, 64), 0
	if n := testing.AllocsPerRun(200, func() {
		dst = picker.Pick(rows[i%len(rows)], dst)
		i++
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}
