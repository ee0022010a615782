package reuse

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestLawOptimumBounds: a cache that knows the future has no fewer hits than LRU of its size, no
// more than one without bound, and no fewer than a smaller one.
func TestLawOptimumBounds(t *testing.T) {
	more := 0
	for _, block := range []int{1, 4, 16} {
		for seed := range uint64(20) {
			s := NewStack(block)
			s.Remember = true
			for _, r := range made(rand.New(rand.NewPCG(seed, 2)), 100) {
				s.Serve(r.content, r.prompt, r.output)
			}
			var capacities []int64
			for c := int64(0); c < s.Blocks(); c += 1 + c/8 {
				capacities = append(capacities, c)
			}
			capacities = append(capacities, s.Blocks())
			best, before := s.Optimum(capacities...), int64(0)
			for i, c := range capacities {
				if lru := s.Hits(c); best[i] < max(lru, before) || best[i] > s.Hits(s.Blocks()) {
					t.Fatalf("blocks of %d, seed %d, %d blocks: the optimum has %d tokens, LRU %d, less "+
						"memory %d, all %d", block, seed, c, best[i], lru, before, s.Hits(s.Blocks()))
				} else if best[i] > lru {
					more++
				}
				before = best[i]
			}
			if last := best[len(best)-1]; last != s.Hits(s.Blocks()) {
				t.Fatalf("blocks of %d, seed %d: %d tokens without bound, want %d", block, seed, last,
					s.Hits(s.Blocks()))
			}
		}
	}
	if more == 0 {
		t.Error("the optimum never had more than LRU")
	}
}

// TestOptimumAgainstAllChoices holds it against the best of all sets of blocks that a cache could
// keep after each request.
func TestOptimumAgainstAllChoices(t *testing.T) {
	const block, capacity = 4, 3
	hits := int64(0)
	for seed := range uint64(12) {
		all, s := made(rand.New(rand.NewPCG(seed, 3)), 8), NewStack(block)
		s.Remember = true
		best := map[string][]uint64{"": nil} // what is kept
		found := map[string]int64{"": 0}
		for i, r := range all {
			s.Serve(r.content, r.prompt, r.output)
			keys := r.keys(i, block)
			nextBest, nextFound := map[string][]uint64{}, map[string]int64{}
			for name, kept := range best {
				n := int64(0)
				for j, key := range keys {
					if (j+1)*block > r.prompt-1 || !slices.Contains(kept, key) {
						break
					}
					n++
				}
				pool := slices.Clone(kept)
				for _, key := range keys {
					if !slices.Contains(pool, key) {
						pool = append(pool, key)
					}
				}
				slices.Sort(pool)
				subsets(pool, capacity, func(set []uint64) {
					to := fmt.Sprint(set)
					if was, ok := nextFound[to]; !ok || found[name]+n > was {
						nextBest[to], nextFound[to] = slices.Clone(set), found[name]+n
					}
				})
			}
			best, found = nextBest, nextFound
		}
		want := int64(0)
		for _, n := range found {
			want = max(want, n)
		}
		if got := s.Optimum(capacity)[0]; got != want*block {
			t.Fatalf("seed %d: %d tokens, want %d", seed, got, want*block)
		}
		hits += want
	}
	if hits < 12 {
		t.Errorf("%d blocks are hit: nothing to compare", hits)
	}
}

// subsets calls f with all subsets of up to n elements.
func subsets(of []uint64, n int, f func([]uint64)) {
	var walk func(from int, set []uint64)
	walk = func(from int, set []uint64) {
		f(set)
		if len(set) == n {
			return
		}
		for i := from; i < len(of); i++ {
			walk(i+1, append(set, of[i]))
		}
	}
	walk(0, nil)
}
