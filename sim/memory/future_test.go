package memory

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/sim/prefix"
)

// asked is a prompt of chunks, by number from 1 on: a path in a small tree.
type asked []int

// drawAsked draws prompts whose chunks have one parent each: chunk c follows c/2.
func drawAsked(t *rapid.T) (all []asked) {
	for range rapid.IntRange(1, 14).Draw(t, "requests") {
		var a asked
		for c := rapid.IntRange(1, 9).Draw(t, "last chunk"); c > 0; c /= 2 {
			a = append(asked{c}, a...)
		}
		all = append(all, a)
	}
	return all
}

// content is a prompt of these chunks of two tokens, and one more token.
func (a asked) content() *prefix.Content {
	c := &prefix.Content{}
	for _, chunk := range a {
		c.Prompt = append(c.Prompt, prefix.Piece{ID: uint64(chunk), Tokens: 2})
	}
	return c
}

// hits serves prompts in sequence from DRAM alone and returns the chunks that are hit.
func hits(all []asked, eviction string, capacity int) (n int) {
	f := NewFuture(2)
	for _, a := range all {
		f.Add(a.content(), 2*len(a)+1, 2*len(a)+1)
	}
	l := &Lower{Chunk: 1, DRAM: int64(capacity), Eviction: eviction, Future: f}
	l.begin()
	for i, a := range all {
		var t Grant
		t.Reset(a.content(), 2*len(a)+1, 2*len(a)+1, 1, uint64(i+1))
		hit := l.find(&t, 0, 2, 2*len(a)+1).Tokens / 2
		n += hit
		l.begins(t.own)
		l.take(&t)
		for c := hit; c < len(a); c++ {
			key, _ := t.chain.Key(2 * (c + 1))
			l.write(key)
		}
		l.dram.written(l.writes, 0)
		l.writes = l.writes[:0]
	}
	return n
}

// most is the most that any choice of what to keep after each prompt hits, by trying all.
func most(all []asked, capacity int) int {
	best := map[uint]int{0: 0} // by what is kept
	for _, a := range all {
		next := map[uint]int{}
		for kept, n := range best {
			has := kept
			for leads, c := true, 0; c < len(a); c++ {
				if leads = leads && kept>>a[c]&1 == 1; leads {
					n++
				}
				has |= 1 << a[c]
			}
			for keep := has; ; keep = (keep - 1) & has {
				if bits.OnesCount(keep) <= capacity {
					if had, ok := next[keep]; !ok || n > had {
						next[keep] = n
					}
				}
				if keep == 0 {
					break
				}
			}
		}
		best = next
	}
	n := 0
	for _, hits := range best {
		n = max(n, hits)
	}
	return n
}

// TestLawBeladyHitsMost: for prompts served in sequence from one tier, no order of eviction hits
// more chunks than Belady's, which hits as many as the best of all choices.
func TestLawBeladyHitsMost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, capacity := drawAsked(t), rapid.IntRange(1, 6).Draw(t, "capacity")
		got := hits(all, Belady, capacity)
		if want := most(all, capacity); got != want {
			t.Errorf("Belady hits %d chunks of %v in %d, the best choice %d", got, all, capacity, want)
		}
		for _, order := range Evictions() {
			if n := hits(all, order, capacity); n > got {
				t.Errorf("%s hits %d chunks of %v in %d, Belady %d", order, n, all, capacity, got)
			}
		}
	})
}

// The future of a trace of Mooncake's size and of its use.
func BenchmarkFuture(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	for b.Loop() {
		f := NewFuture(256)
		for range 12_031 {
			c := &prefix.Content{Prompt: make([]prefix.Piece, 24)}
			for j := range c.Prompt {
				c.Prompt[j] = prefix.Piece{ID: uint64(1 + rng.IntN(1000)*24 + j), Tokens: 512}
			}
			f.Add(c, 24*512, 24*512)
		}
	}
}
