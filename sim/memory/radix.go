package memory

import (
	"container/list"
	"slices"

	"github.com/sparseserve/sparseserve/sim/prefix"
)

// Radix is the HBM page cache of SGLang's RadixAttention, with page tokens per page:
//
//   - KV is in a tree whose nodes are runs of consecutive pages. A prompt enters it after each
//     prefill chunk, an output when its request ends. Pages that the tree already has are then
//     released. A preempted request enters nothing.
//   - A request locks the nodes from its last node to the root. Eviction removes whole unlocked
//     leaves, the least recently matched or entered first.
//   - A hit ends before the last token, because its logits are needed. A node is split there.
//
// Not safe for concurrent use.
type Radix struct {
	page      int
	watermark int
	total     int
	free      int // pages
	evictable int // pages of unlocked nodes
	numbers   numbers
	root      *node
	order     *list.List // of all nodes but the root, least recent first
	version   uint64     // version of the node structure
	below[*node]
	readers
}

// node is a run of pages with their keys and page numbers.
type node struct {
	parent   *node
	children map[uint64]*node // by the key of their first page
	keys     []uint64
	places   []int32
	locks    int
	at       *list.Element // in Radix.order
}

// numbers allocates page numbers and reuses returned ones first.
type numbers struct {
	returned []int32
	next     int32
}

func (n *numbers) take() int32 {
	if last := len(n.returned) - 1; last >= 0 {
		at := n.returned[last]
		n.returned = n.returned[:last]
		return at
	}
	n.next++
	return n.next - 1
}

func (n *numbers) giveUp(pages []int32) { n.returned = append(n.returned, pages...) }

// branch is a request's position in the tree.
type branch struct {
	last     *node // last node whose pages the request shares; nil: it holds nothing
	shared   int   // tree pages up to last
	owned    int   // the request's own pages
	target   int   // prefill tokens
	computed int   // tokens computed after the last planned step
	keys     []uint64
	found    *node // node found by Match
	pages    int   // tree pages up to found
}

// NewRadix returns an empty tree of total pages. Admit keeps the fraction watermark of all free.
func NewRadix(total int64, page int, watermark float64, lower *Lower) *Radix {
	return &Radix{page: page, watermark: int(watermark * float64(total)), total: int(total),
		free: int(total), version: 1, root: &node{children: map[uint64]*node{}, locks: 1},
		order: list.New(), below: newBelow[*node](lower, total)}
}

func (r *Radix) pages(tokens int) int { return (tokens + r.page - 1) / r.page }

// Fits reports whether a request of the given tokens could ever be admitted.
func (r *Radix) Fits(tokens int) bool { return r.total-r.pages(tokens) >= r.watermark }

// Used returns the number of pages that requests hold or lock. Total returns the capacity in pages.
func (r *Radix) Used() int64  { return int64(r.total - r.free - r.evictable) }
func (r *Radix) Total() int64 { return int64(r.total) }

// Tokens returns the number of tokens that n pages hold.
func (r *Radix) Tokens(n int64) int64 { return n * int64(r.page) }

// Match returns the number of leading tokens of a new prefill that are in the tree or that its
// first step loads.
func (r *Radix) Match(g *Grant, target int) int {
	b := &g.branch
	b.target = target
	if b.last != nil { // its load has already been granted
		return b.shared * r.page
	}
	if g.at != r.version {
		b.name(g, r.page)
		b.found, b.pages = r.walk(b.keys[:min(len(b.keys), (target-1)/r.page)])
		g.at = r.version // a node may have been split
	}
	return r.lower.match(g, b.pages, r.page, target)
}

// name computes the keys of a text's pages.
func (b *branch) name(g *Grant, page int) {
	if b.keys = b.keys[:0]; len(g.pieces) > 0 {
		chain := prefix.NewChain(g.pieces)
		for n := page; ; n += page {
			key, ok := chain.Key(n)
			if !ok {
				return
			}
			b.keys = append(b.keys, key)
		}
	}
}

// walk follows keys down the tree as far as they match. It splits the node in which the match ends
// and makes all visited nodes the most recent.
func (r *Radix) walk(keys []uint64) (at *node, pages int) {
	at = r.root
	for pages < len(keys) {
		child := at.children[keys[pages]]
		if child == nil {
			break
		}
		n := 0
		for n < len(child.keys) && pages+n < len(keys) && child.keys[n] == keys[pages+n] {
			n++
		}
		if n < len(child.keys) {
			child = r.split(child, n)
		}
		r.order.MoveToBack(child.at)
		at, pages = child, pages+n
	}
	return at, pages
}

// split splits a node after the given pages and returns the first part.
func (r *Radix) split(n *node, pages int) *node {
	head := &node{parent: n.parent, keys: n.keys[:pages:pages], locks: n.locks,
		children: map[uint64]*node{n.keys[pages]: n}}
	n.parent.children[n.keys[0]] = head
	head.places, n.places = n.places[:pages:pages], n.places[pages:]
	n.keys, n.parent = n.keys[pages:], head
	head.at = r.order.PushBack(head)
	r.version++
	return head
}

// Admit grants pages for the given tokens if the watermark stays free. The planned step computes
// the first now tokens. Grow extends a grant to the given tokens.
func (r *Radix) Admit(g *Grant, tokens, now int) bool {
	return r.grant(g, tokens, now, r.watermark)
}

func (r *Radix) Grow(g *Grant, tokens, now int) bool {
	return r.grant(g, tokens, now, 0)
}

// Room reports whether free pages and unlocked leaves suffice to extend a grant to the given
// tokens.
func (r *Radix) Room(g *Grant, tokens int) bool {
	b := &g.branch
	shared, evictable := b.shared, r.evictable
	if b.last == nil { // the request would lock the nodes found by Match
		shared = b.pages
		for n := b.found; n != r.root; n = n.parent {
			if n.locks == 0 {
				evictable -= len(n.keys)
			}
		}
	}
	return r.free+evictable >= r.pages(tokens)-shared-b.owned
}

func (r *Radix) grant(g *Grant, tokens, now, keep int) bool {
	b := &g.branch
	begins := b.last == nil
	if begins {
		b.last, b.shared = b.found, b.pages
		r.lock(b.last)
	} else if done := min(b.computed, b.target); b.shared < done/r.page && b.computed <= b.target {
		r.enter(g, done/r.page)
	}
	need := max(0, r.pages(tokens)-b.shared-b.owned)
	if r.free+r.evictable-need < keep && (begins || need > 0) {
		if begins {
			r.unlock(b.last)
			b.last, b.shared = nil, 0
		}
		return false
	}
	if begins {
		g.blocks = slices.Grow(g.blocks[:0], b.shared)[:b.shared]
		r.fill(g, 0)
		writes := false
		r.begins(g, g.blocks, func(i int) uint64 { return b.keys[i] }, func(int, int) { writes = true })
		if writes {
			r.keep(b.last)
		}
	}
	for r.free < need {
		r.evict()
	}
	r.free -= need
	b.owned += need
	for range need {
		g.blocks = append(g.blocks, r.numbers.take())
	}
	if begins && g.loaded.Tokens > 0 && !r.lower.Async {
		r.enter(g, b.shared+g.loaded.Tokens/r.page)
	}
	b.computed = now
	return true
}

// enter inserts a request's first pages into the tree and releases its copies of pages that the
// tree already has.
func (r *Radix) enter(g *Grant, pages int) {
	b := &g.branch
	at, had := r.walk(b.keys[:pages])
	r.free += had - b.shared
	r.numbers.giveUp(g.blocks[b.shared:had])
	b.owned -= pages - b.shared
	if had < pages {
		leaf := &node{parent: at, keys: slices.Clone(b.keys[had:pages]),
			places: slices.Clone(g.blocks[had:pages]), children: map[uint64]*node{}}
		at.children[leaf.keys[0]] = leaf
		leaf.at = r.order.PushBack(leaf)
		r.evictable += len(leaf.keys)
		r.version++
		at = leaf
	}
	r.lock(at)
	r.unlock(b.last)
	from := b.shared
	b.last, b.shared = at, pages
	r.fill(g, from)
	r.entered(g, had, pages)
}

// fill copies the tree's page numbers into a request's block list, starting at the given page.
func (r *Radix) fill(g *Grant, from int) {
	end := g.branch.shared
	for n := g.branch.last; end > from; n = n.parent {
		end -= len(n.places)
		copy(g.blocks[end:], n.places)
	}
}

// Release frees a grant. If the request has ended, its computed pages stay in the tree.
func (r *Radix) Release(g *Grant, ended bool) {
	b := &g.branch
	if b.last == nil {
		return
	}
	r.readers.end(g)
	if pages := min(b.computed/r.page, len(b.keys)); ended && pages > b.shared {
		r.enter(g, pages)
	}
	r.free += b.owned
	r.numbers.giveUp(g.blocks[b.shared:])
	g.blocks = g.blocks[:0]
	r.unlock(b.last)
	b.last, b.shared, b.owned, b.computed, g.at = nil, 0, 0, 0, 0
	g.loaded = Load{}
}

// Reread ends the step and returns the tokens that it reads repeatedly.
func (r *Radix) Reread() (tokens int64) { return r.readers.Reread() * int64(r.page) }

// lock locks a node and its ancestors against eviction.
func (r *Radix) lock(n *node) {
	for ; n != r.root; n = n.parent {
		if n.locks++; n.locks == 1 {
			r.evictable -= len(n.keys)
		}
	}
}

func (r *Radix) unlock(n *node) {
	for ; n != r.root; n = n.parent {
		if n.locks--; n.locks == 0 {
			r.evictable += len(n.keys)
		}
	}
}

// evict frees the least recently used unlocked leaf.
func (r *Radix) evict() {
	at := r.order.Front()
	n := at.Value.(*node)
	for n.locks > 0 || len(n.children) > 0 {
		at = at.Next()
		n = at.Value.(*node)
	}
	r.writeBack(n)
	delete(n.parent.children, n.keys[0])
	r.order.Remove(at)
	r.free += len(n.keys)
	r.numbers.giveUp(n.places)
	r.evictable -= len(n.keys)
	r.evicted += int64(len(n.keys))
	r.version++
}
