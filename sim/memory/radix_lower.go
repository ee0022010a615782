package memory

import "github.com/sparseserve/sparseserve/sim/des"

// A tree uses the tiers of lower.go, as a Pool does. A chunk is written when its text enters the
// tree, when its last page reaches the hit count, or when its node is evicted. A node whose chunks
// are being saved is locked. The end of a text is written and touched first, so that LRU order
// evicts leaves first.

// Fetch reports whether the match must be loaded before the prefill begins, and allocates pages
// for it. ok is false if there is no room.
func (r *Radix) Fetch(g *Grant) (loads, ok bool) {
	if g.branch.last != nil || !r.fetches(g) {
		return false, true
	}
	return true, r.grant(g, g.branch.pages*r.page+g.load.Tokens, 0, 0)
}

// Landed makes the pages that a request has loaded visible to other requests.
func (r *Radix) Landed(g *Grant) { r.enter(g, len(g.blocks)) }

// entered writes the chunks of a text that entered the tree, with new pages from had on. It also
// rewrites earlier chunks that the tier has evicted.
func (r *Radix) entered(g *Grant, had, pages int) {
	l, b := r.lower, &g.branch
	if l == nil {
		return
	}
	for i := had; i < pages; i++ {
		r.hits[g.blocks[i]] = 0
		r.ends[g.blocks[i]] = (i+1)%l.Chunk == 0 && (i+1)*r.page > g.stored
	}
	writes := false
	for i := pages / l.Chunk * l.Chunk; i > 0; i -= l.Chunk {
		l.touch(b.keys[i-1])
		if r.ends[g.blocks[i-1]] && !l.Back && l.Hits == 0 {
			writes = l.write(b.keys[i-1]) || writes
		}
	}
	if writes {
		r.keep(b.last)
	}
}

// writeBack writes the chunks that end in an evicted node.
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

// keep locks a node until its chunks are saved.
func (r *Radix) keep(n *node) {
	r.lock(n)
	r.kept.add(n, never)
}

// Plan sets the planning time and unlocks nodes whose saves have ended by then.
func (r *Radix) Plan(now des.Time) {
	if r.lower != nil {
		r.lower.now = now
		r.kept.end(now, r.unlock)
	}
}
