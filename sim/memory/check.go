package memory

import (
	"fmt"
	"iter"
	"slices"
)

// Check verifies a pool against all grants: the references of a block equal the grants that contain
// it, each unreferenced block is in the queue once, and the index contains exactly the blocks with
// content.
func (p *Pool) Check(grants iter.Seq[*Grant]) error {
	refs, held := make([]int32, len(p.refs)), int64(0)
	for g := range grants {
		held += int64(p.held(g))
		for _, blocks := range [][]int32{g.blocks, g.parts.windowed} {
			for _, b := range blocks {
				refs[b]++
			}
		}
	}
	for _, s := range p.saves {
		refs[s.block]++
	}
	for _, k := range p.kept.held {
		refs[k.what]++
	}
	if p.Unshared && held != p.Used() || p.free < 0 {
		return fmt.Errorf("%d blocks are used of %d, requests hold %d", p.Used(), p.total, held)
	}
	idle := 0
	for b, n := range refs {
		if n != p.refs[b] {
			return fmt.Errorf("block %d counts %d references, %d grants have it", b, p.refs[b], n)
		}
		if n == 0 {
			idle++
		}
	}
	if unused := p.total - len(refs); idle+unused != p.free && !p.Unshared {
		return fmt.Errorf("%d blocks are counted free, %d have no holder and %d were never used", p.free,
			idle, unused)
	}
	for at := p.queue.next[0]; at != 0; at = p.queue.next[at] {
		if idle--; idle < 0 || p.refs[at-1] != 0 || p.queue.prev[p.queue.next[at]] != at {
			return fmt.Errorf("block %d with %d references is in the queue", at-1, p.refs[at-1])
		}
	}
	if idle != 0 {
		return fmt.Errorf("%d blocks without a holder are not in the queue", idle)
	}
	keyed := 0
	for b, key := range p.keys {
		if key == 0 {
			continue
		}
		keyed++
		if found := p.index.Find(p.keys, key); found < 0 {
			return fmt.Errorf("block %d is not found by its key", b)
		}
	}
	if keyed != p.index.Len() {
		return fmt.Errorf("%d blocks have content, the index has %d", keyed, p.index.Len())
	}
	return p.readers.check()
}

// Check verifies a tree against all grants: pages are conserved, the locks of a node equal the
// requests whose last node is the node or a descendant, every node is found by its keys, and every
// page has a unique number that matches the requests' block lists.
func (r *Radix) Check(grants iter.Seq[*Grant]) error {
	owned, locks, places := 0, map[*node]int{}, map[int32]bool{}
	for g := range grants {
		b := &g.branch
		owned += b.owned
		if len(g.blocks) != b.shared+b.owned {
			return fmt.Errorf("a request names %d pages of %d", len(g.blocks), b.shared+b.owned)
		}
		for _, p := range g.blocks[b.shared:] {
			places[p] = true
		}
		shared := 0
		for n := b.last; n != nil && n != r.root; n = n.parent {
			locks[n]++
			shared += len(n.keys)
			if at := b.shared - shared; at < 0 ||
				!slices.Equal(g.blocks[at:at+len(n.keys)], n.places) {
				return fmt.Errorf("a request has other pages than the tree where it has the tree's")
			}
		}
		if b.last != nil && shared != b.shared {
			return fmt.Errorf("a request has %d pages of the tree and counts %d", shared, b.shared)
		}
	}
	for _, k := range r.kept.held {
		for n := k.what; n != r.root; n = n.parent {
			locks[n]++
		}
	}
	in, evictable := 0, 0
	for at := r.order.Front(); at != nil; at = at.Next() {
		n := at.Value.(*node)
		in += len(n.keys)
		for _, p := range n.places {
			places[p] = true
		}
		switch {
		case n.locks != locks[n]:
			return fmt.Errorf("a node counts %d locks, %d requests hold it", n.locks, locks[n])
		case n.parent.children[n.keys[0]] != n:
			return fmt.Errorf("a node of %d pages is not found from its parent", len(n.keys))
		case n.locks == 0:
			evictable += len(n.keys)
		}
		delete(locks, n)
	}
	if len(locks) > 0 {
		return fmt.Errorf("requests hold %d nodes that are not in the tree", len(locks))
	}
	if len(places) != in+owned || int(r.numbers.next) > r.total {
		return fmt.Errorf("%d pages have %d numbers below %d, of %d", in+owned, len(places),
			r.numbers.next, r.total)
	}
	if in+owned+r.free != r.total || evictable != r.evictable || r.free < 0 {
		return fmt.Errorf("%d pages in the tree, %d of requests and %d free are not %d; %d can "+
			"be evicted, %d are counted", in, owned, r.free, r.total, evictable, r.evictable)
	}
	return r.readers.check()
}
