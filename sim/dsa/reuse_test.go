package dsa

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// stampedLRU is a buffer that keeps when each candidate was last used.
type stampedLRU struct {
	slots int
	used  map[uint16]int // of those in it
	now   int
}

// use returns how many of the picks are missing.
func (b *stampedLRU) use(picks []uint16) (missing int) {
	var hits, loads []uint16
	for _, p := range picks {
		if _, ok := b.used[p]; ok {
			hits = append(hits, p)
		} else {
			loads = append(loads, p)
		}
	}
	slices.SortFunc(hits, func(x, y uint16) int { return b.used[x] - b.used[y] })
	for _, p := range hits {
		b.now++
		b.used[p] = b.now
	}
	for range max(0, len(b.used)+len(loads)-b.slots) {
		oldest, at := uint16(0), 1<<60
		for p, u := range b.used {
			if u < at && !slices.Contains(picks, p) {
				oldest, at = p, u
			}
		}
		delete(b.used, oldest)
	}
	for _, p := range loads {
		b.now++
		b.used[p] = b.now
	}
	return len(loads)
}

// walkCycle is a random cycle whose picks change little from step to step.
func walkCycle(r *rand.Rand, n, k, steps int) *Cycle {
	score := make([]float32, n)
	fixed := make([]float64, n)
	for i := range fixed {
		fixed[i] = r.NormFloat64()
	}
	return Record(n, steps, TopK{K: k}, func(int) *View {
		for i := range score {
			score[i] = 0.8*score[i] + float32(0.3*r.NormFloat64()+0.2*fixed[i])
		}
		return &View{Critical: score}
	})
}

// A buffer that serves no candidate misses none, one that serves more never misses fewer of what it
// has not seen, and one that serves the first candidates equals a cycle without the other picks.
func TestReuseOfPart(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 2))
	const n, slots = 120, 24
	cycle := walkCycle(r, n, 16, 64)
	for within := 0; within <= n; within += 15 {
		part, less := NewReuse(cycle, slots, within), NewReuse(cycle, slots, max(0, within-15))
		want := &stampedLRU{slots: slots, used: map[uint16]int{}}
		for i := range 2 * cycle.Steps {
			var picks []uint16
			for _, p := range cycle.Next(i % cycle.Steps) {
				if int(p) < within {
					picks = append(picks, p)
				}
			}
			missing, got := want.use(picks), part.Misses(i%cycle.Steps, Settled)
			if i >= cycle.Steps && got != missing {
				t.Fatalf("step %d, first %d: %d misses, want %d", i, within, got, missing)
			}
			if cold := part.Misses(i%cycle.Steps, 0); cold != len(picks) ||
				cold < less.Misses(i%cycle.Steps, 0) || within == 0 && got != 0 {
				t.Fatalf("step %d, first %d: %d misses when empty of %d", i, within, cold, len(picks))
			}
		}
	}
}

// Misses equal a buffer's that keeps times of use, step by step: exactly once it is settled.
// Before, within 2 %, the misses of a settled buffer, or candidates not used since the buffer was
// empty: picks of one step are in another order in it.
func TestReuseIsLRU(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	for _, c := range []struct{ n, k, slots int }{
		{60, 8, 8}, {60, 8, 12}, {200, 16, 40}, {50, 5, 50},
	} {
		cycle := walkCycle(r, c.n, c.k, 97)
		reuse := NewReuse(cycle, c.slots, c.n)
		want := &stampedLRU{slots: c.slots, used: map[uint16]int{}}
		for i := range 3 * cycle.Steps {
			missing := want.use(cycle.Next(i % cycle.Steps))
			if got := reuse.Misses(i%cycle.Steps, Settled); i >= cycle.Steps && got != missing {
				t.Fatalf("%+v, step %d: %d misses, want %d", c, i, got, missing)
			}
		}
		off, all := 0, 0
		for start := range cycle.Steps {
			cold := &stampedLRU{slots: c.slots, used: map[uint16]int{}}
			for age := range 30 {
				at := (start + age) % cycle.Steps
				got, missing := reuse.Misses(at, age), cold.use(cycle.Next(at))
				off, all = off+max(got-missing, missing-got), all+missing
			}
		}
		if 50*off > all {
			t.Errorf("%+v: %d misses of %d are elsewhere when the buffer begins empty", c, off, all)
		}
	}
}

// A larger buffer never misses more, at any step and age; one for all candidates never misses what
// was used before; misses and hits are all picks.
func TestReuseLaws(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	cycle := walkCycle(r, 120, 10, 64)
	var last *Reuse
	for slots := 10; slots <= 130; slots += 5 {
		reuse := NewReuse(cycle, slots, 120)
		for t1 := range cycle.Steps {
			for _, age := range []int{0, 1, 2, 5, 20, 63, 64, Settled} {
				got := reuse.Misses(t1, age)
				if last != nil && got > last.Misses(t1, age) {
					t.Fatalf("%d slots, step %d, age %d: %d misses, fewer slots had %d", slots, t1, age, got,
						last.Misses(t1, age))
				}
				if age == 0 && got != 10 || got < 0 || got > 10 {
					t.Fatalf("%d slots, step %d, age %d: %d misses of 10 picks", slots, t1, age, got)
				}
				if age > 0 && got > reuse.Misses(t1, age-1) {
					t.Fatalf("%d slots, step %d: more misses at age %d than before", slots, t1, age)
				}
			}
			if got := reuse.Misses(t1, Settled); slots >= 120 && got != 0 {
				t.Fatalf("%d misses in a buffer for all", got)
			}
		}
		last = reuse
	}
}
