package dsa

import (
	"slices"
	"sort"
	"testing"

	"pgregory.net/rapid"
)

// Law 7: a selection is a subset of existing blocks, of size min(k, existing),
// without repeats; and it is the top k of a naive sort.
func TestLaw7TopKAgainstSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scores := rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 30), func(i int) float32 { return float32(i) }), 1, 400).Draw(t, "scores")
		k := rapid.IntRange(1, 300).Draw(t, "k")
		var prev []uint16 // a hint of any quality changes nothing
		if len(scores) > k && rapid.Bool().Draw(t, "hint") {
			for _, b := range rapid.Permutation(indices(len(scores))).Draw(t, "prev")[:k] {
				prev = append(prev, b)
			}
		}
		got := slices.Clone(TopK{k}.Pick(scores, prev, nil))
		slices.Sort(got)
		order := make([]int, len(scores))
		for i := range order {
			order[i] = i
		}
		sort.SliceStable(order, func(i, j int) bool { return scores[order[i]] > scores[order[j]] })
		var want []uint16
		for _, i := range order[:min(k, len(order))] {
			want = append(want, uint16(i))
		}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("k=%d of %v: got %v, want %v", k, scores, got, want)
		}
	})
}

func indices(n int) []uint16 {
	s := make([]uint16, n)
	for i := range s {
		s[i] = uint16(i)
	}
	return s
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
			want := slices.Clone(TopK{k}.Pick(rows[i], nil, nil))
			got := slices.Clone(s.At(i))
			slices.Sort(want)
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

func BenchmarkTopK(b *testing.B) {
	scores := make([]float32, 400)
	x := uint32(1)
	for i := range scores {
		x = x*1664525 + 1013904223
		scores[i] = float32(x>>8) / (1 << 24)
	}
	dst := make([]uint16, 0, 64)
	prev := slices.Clone(TopK{60}.Pick(scores, nil, nil))
	b.ReportAllocs()
	for b.Loop() {
		dst = TopK{60}.Pick(scores, prev, dst)
	}
}

func TestPickAllocatesNothing(t *testing.T) {
	scores := make([]float32, 400)
	for i := range scores {
		scores[i] = float32(i * 7919 % 400)
	}
	dst, prev := make([]uint16, 0, 64), []uint16(nil)
	if n := testing.AllocsPerRun(100, func() { dst = TopK{60}.Pick(scores, prev, dst) }); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}
