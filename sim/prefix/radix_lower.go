package prefix

import (
	"math"

	"github.com/sparseserve/sparseserve/sim/des"
)

// Below a tree are the tiers of lower.go, as below a Pool. A chunk is written when a text enters
// the tree that has it, when the page that ends it is hit, or when its node is evicted. A node
// whose chunks are being saved is locked. Of a text the end is written and used first, so that
// least recently used first is leaf first.

// Fetch says whether what Match found has to be loaded before the prefill begins, and grants the
// room for it; ok is false where there is none.
func (r *Radix) Fetch(g *Grant) (loads, ok bool) {
	t := g.Table
	if r.lower == nil || !r.lower.Async || t.branch.last != nil || t.load.Tokens == 0 {
		return false, true
	}
	return true, r.grant(t, t.branch.pages*r.page+t.load.Tokens, 0, 0)
}

// Landed has others find what a request has loaded.
func (r *Radix) Landed(g *Grant) { r.enter(g.Table, len(g.Table.blocks)) }

// begins notes what a request loads that has begun, and what it hits.
func (r *Radix) begins(t *Table) {
	l, b := r.lower, &t.branch
	if l == nil {
		return
	}
	l.begins(t.own)
	l.take(t)
	t.load, t.loaded = Load{}, t.load
	writes := false
	for i := b.shared / l.Chunk * l.Chunk; i > 0; i -= l.Chunk {
		l.touch(b.keys[i-1])
		writes = r.hit(t.blocks[i-1]) && l.write(b.keys[i-1]) || writes
	}
	if writes {
		r.keep(b.last)
	}
}

// hit counts a hit of a page and returns whether the chunk that it ends is due to be written.
func (r *Radix) hit(page int32) bool {
	if r.hits[page] < math.MaxUint8 {
		r.hits[page]++
	}
	return r.ends[page] && int(r.hits[page]) == r.lower.Hits
}

// entered has chunks written of a text whose pages from had on are new in the tree, and of the
// pages before those that the tier has lost.
func (r *Radix) entered(t *Table, had, pages int) {
	l, b := r.lower, &t.branch
	if l == nil {
		return
	}
	for i := had; i < pages; i++ {
		r.hits[t.blocks[i]] = 0
		r.ends[t.blocks[i]] = (i+1)%l.Chunk == 0 && (i+1)*r.page > t.stored
	}
	writes := false
	for i := pages / l.Chunk * l.Chunk; i > 0; i -= l.Chunk {
		l.touch(b.keys[i-1])
		if r.ends[t.blocks[i-1]] && !l.Back && l.Hits == 0 {
			writes = l.write(b.keys[i-1]) || writes
		}
	}
	if writes {
		r.keep(b.last)
	}
}

// writeBack writes the chunks that end in a node which is evicted.
func (r *Radix) writeBack(n *node) {
	if r.lower == nil || !r.lower.Back {
		return
	}
	for i := len(n.places) - 1; i >= 0; i-- {
		if r.ends[n.places[i]] {
			r.lower.touch(n.keys[i])
			r.lower.write(n.keys[i])
		}
	}
}

// keep locks a node of which chunks are to be saved.
func (r *Radix) keep(n *node) {
	r.lock(n)
	r.kept.add(n)
}

// Plan sets the time at which what follows is planned.
func (r *Radix) Plan(now des.Time) {
	if r.lower != nil {
		r.lower.now = now
		r.kept.end(now, r.unlock)
	}
}

// Written has these chunks be in DRAM from one time on and on SSD from another.
func (r *Radix) Written(dram, ssd des.Time) {
	r.kept.saved(dram)
	r.lower.written(dram, ssd)
}
