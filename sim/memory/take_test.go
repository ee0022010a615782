package memory

import (
	"testing"

	"github.com/sparseserve/sparseserve/sim/prefix"
)

// A hit has its chunk written to DRAM with room for one, where the request finds the chunk that
// follows: that is loaded before it loses its place, in a pool as in a tree.
func TestHitsLoadBeforeTheyWrite(t *testing.T) {
	const size, tokens = 2, 3 * 2
	type memory interface {
		Match(*Grant, int) int
		Admit(*Grant, int, int) bool
		Release(*Grant, bool)
	}
	for _, tree := range []bool{false, true} {
		l := &Lower{Chunk: 1, DRAM: 1, Hits: 1, Eviction: LRU}
		var m memory = NewPool(8, size, 0, l)
		if tree {
			m = NewRadix(8, size, 0, l)
		}
		serve := func(own uint64, cached int, pieces ...prefix.Piece) {
			g := &Grant{}
			g.Reset(&prefix.Content{Prompt: pieces}, tokens, tokens, 1, own)
			got := m.Match(g, tokens)
			if !m.Admit(g, tokens, tokens) || got != cached {
				t.Errorf("tree %v: request %d has %d tokens, want %d", tree, own, got, cached)
			}
			m.Release(g, true)
		}
		serve(1, 0, prefix.Piece{ID: 7, Tokens: size})
		whole := prefix.Piece{ID: 7, Tokens: tokens}
		chain := prefix.NewChain([]prefix.Piece{whole})
		first, _ := chain.Key(size)
		second, _ := chain.Key(2 * size)
		l.dram.put(second, 0)
		serve(2, 2*size, whole)
		if l.dram.evicted != 1 || l.dram.index.Find(l.dram.keys, first) < 1 {
			t.Errorf("tree %v: %d chunks lost their places, want the loaded one; the hit's is there: %v",
				tree, l.dram.evicted, l.dram.index.Find(l.dram.keys, first) > 0)
		}
	}
}

// A hit has both chunks of a text written to DRAM with room for one: it keeps the first, because no
// prompt can load the second alone, in a pool as in a tree.
func TestHitsWriteTheEndFirst(t *testing.T) {
	for name, open := range map[string]func(*Lower) tiered{
		"pool": func(l *Lower) tiered { return NewPool(8, 2, 0, l) },
		"tree": func(l *Lower) tiered { return NewRadix(8, 2, 0, l) },
	} {
		l := &Lower{Chunk: 1, DRAM: 1, Hits: 1, Eviction: LRU}
		p, text := open(l), prefix.Piece{ID: 7, Tokens: 4}
		for own := range uint64(2) {
			serves(t, p, 0, own, text)
		}
		chain := prefix.NewChain([]prefix.Piece{text})
		first, _ := chain.Key(2)
		if dram, _ := p.Writes(); dram != 2 || l.dram.index.Find(l.dram.keys, first) < 1 {
			t.Errorf("%s: %d chunks are written, the first is there: %v", name, dram,
				l.dram.index.Find(l.dram.keys, first) > 0)
		}
	}
}
