package memory

import (
	"fmt"
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/sim/prefix"
)

// Pool is the HBM block pool with automatic prefix caching as in vLLM V1:
//
//   - A full block, or one that the planned step will fill, is found by the key of its text from
//     the first token on. Blocks of equal text are not merged.
//   - Blocks without references are in a free queue. Allocation takes blocks from its head, which
//     evicts their content. Freed blocks are appended in reverse text order, so that the end of a
//     text is evicted first.
//   - A hit removes its blocks from the queue or shares them with their current users. It ends at
//     the first block that is not found and before the last token, because the last token's logits
//     are needed.
//
// Not safe for concurrent use; no call allocates in steady state.
type Pool struct {
	blockTokens int
	watermark   int
	total       int
	free        int // blocks in the queue, or never used
	refs        []int32
	keys        []uint64 // by block; 0: no content
	queue       ring     // free blocks that were used, each at its number + 1
	texts       []uint64 // scratch of Match
	index       prefix.Index
	version     uint64 // version of keys
	below[int32]

	// Layers are the layers of blocks where some have windows.
	Layers WindowLayers
	// Unshared has requests share nothing: blocks are only counted. A trace declares which prompt
	// tokens are cached.
	Unshared bool
	// Late delays the reuse of blocks until they are saved, as with offloading.
	Late  bool
	saves []saving // that were begun with Save, oldest first
	// Drafts makes a hit leave out its last block, as vLLM does with MTP layers: they draft from the
	// hidden states of its tokens.
	Drafts bool
	readers
}

// NewPool returns a pool of total blocks. Admit keeps the fraction watermark of all free.
func NewPool(total int64, blockTokens int, watermark float64, lower *Lower) *Pool {
	return &Pool{
		blockTokens: blockTokens, watermark: int(watermark * float64(total)), total: int(total),
		free: int(total), queue: newRing(), index: prefix.NewIndex(4), version: 1,
		below: newBelow[int32](lower, total), Layers: WindowLayers{Full: 1},
	}
}

func (p *Pool) blocks(tokens int) int { return (tokens + p.blockTokens - 1) / p.blockTokens }

// Fits reports whether a request of the given tokens could ever be admitted.
func (p *Pool) Fits(tokens int) bool {
	return p.total-p.need(p.blocks(tokens), 0) >= p.watermark
}

// Used returns the number of blocks that requests hold. Total returns the capacity in blocks.
func (p *Pool) Used() int64  { return int64(p.total - p.free) }
func (p *Pool) Total() int64 { return int64(p.total) }

// Tokens returns the number of tokens of one decoding request that n blocks hold.
func (p *Pool) Tokens(n int64) int64 {
	full, windowed := int64(p.Layers.Full), int64(p.Layers.Windowed)
	kept := windowed * int64(p.blocks(p.Layers.Tokens)+1) // by layers with a window
	switch {
	case full == 0 && n >= kept:
		return math.MaxInt64
	case n*windowed <= (full+windowed)*kept:
		n /= full + windowed
	default:
		n = (n - kept) / full
	}
	return n * int64(p.blockTokens)
}

// Match returns the number of leading tokens of a new prefill whose KV is in the pool, or will be
// when the planned step has run, including tokens that its first step loads.
func (p *Pool) Match(g *Grant, target int) int {
	switch {
	case p.Unshared:
		return g.Cached
	case g.parts.rows > 0: // its load has already been granted
		return g.full * p.blockTokens
	}
	if g.at != p.version {
		g.match, g.at, p.texts = g.match[:0], p.version, p.texts[:0]
		chain := prefix.NewChain(g.pieces)
		for n := p.blockTokens; n < target; n += p.blockTokens {
			key, ok := chain.Key(n)
			if !ok || !p.find(&g.match, key, 0, p.Layers.Full) {
				break
			}
			p.texts = append(p.texts, key)
		}
		if n := len(p.texts); p.Drafts && n > 0 {
			p.texts = p.texts[:n-1]
		}
		if g.parts.hit = len(p.texts); p.Layers.Windowed > 0 {
			g.parts.hit = p.endInWindow(g)
		} else {
			g.match = g.match[:g.parts.hit]
		}
	}
	return p.lower.match(g, g.parts.hit, p.blockTokens, target)
}

// key returns the key of a text's i-th block. Blocks of layers that keep the whole context come
// before blocks of layers with windows.
func key(text uint64, i int) uint64 {
	if i == 0 {
		return text
	}
	return prefix.Mix(text, uint64(i))
}

// find appends blocks [from, end) of a text's tokens if the pool has them all.
func (p *Pool) find(to *[]int32, text uint64, from, end int) bool {
	had := len(*to)
	for i := from; i < end; i++ {
		b := p.index.Find(p.keys, key(text, i))
		if b < 0 {
			*to = (*to)[:had]
			return false
		}
		*to = append(*to, b)
	}
	return true
}

// Fetch reports whether the match must be loaded before the prefill begins, and allocates blocks
// for it. ok is false if there is no room.
func (p *Pool) Fetch(g *Grant) (loads, ok bool) {
	if g.parts.rows > 0 || !p.fetches(g) {
		return false, true
	}
	return true, p.grant(g, g.parts.hit*p.blockTokens+g.load.Tokens, 0, 0)
}

// Landed makes the blocks that a request has loaded visible to other requests.
func (p *Pool) Landed(g *Grant) {
	for g.full < g.parts.rows {
		p.enter(g)
	}
}

// Admit grants blocks for the given tokens if the watermark stays free. The planned step computes
// the first now tokens.
func (p *Pool) Admit(g *Grant, tokens, now int) bool {
	return p.grant(g, tokens, now, p.watermark)
}

// Grow extends a grant to the given tokens and may use the last free block. The planned step
// computes the first now tokens.
func (p *Pool) Grow(g *Grant, tokens, now int) bool {
	return p.grant(g, tokens, now, 0)
}

// Room reports whether the queue has enough blocks to extend a grant to the given tokens. Matched
// blocks in the queue also take up free blocks.
func (p *Pool) Room(g *Grant, tokens int) bool {
	return p.remain(g, tokens) >= 0
}

// remain returns the blocks that are free after a grant to the given tokens.
func (p *Pool) remain(g *Grant, tokens int) int {
	held, from := p.held(g), g.parts.from
	if g.parts.rows == 0 {
		held, from = len(g.match)-p.idle(g.match), p.windowFrom(g.parts.hit)
	}
	return p.free - (p.need(p.blocks(tokens), from) - held)
}

// held returns the number of a grant's blocks.
func (p *Pool) held(g *Grant) int {
	return g.parts.rows*p.Layers.Full + (g.parts.rows-g.parts.from)*p.Layers.Windowed
}

// idle counts the matched blocks that no request holds.
func (p *Pool) idle(match []int32) (n int) {
	for _, b := range match {
		if p.refs[b] == 0 {
			n++
		}
	}
	return n
}

func (p *Pool) grant(g *Grant, tokens, now, keep int) bool {
	h, rows := &g.parts, p.blocks(tokens)
	begins := h.rows == 0
	if !begins {
		p.slide(g)
	}
	if (begins || rows > h.rows) && p.remain(g, tokens) < keep {
		return false
	}
	if begins {
		p.begin(g)
	}
	if p.Unshared && rows > h.rows {
		p.free -= (rows - h.rows) * (p.Layers.Full + p.Layers.Windowed)
		h.rows = rows
	}
	for ; h.rows < rows; h.rows++ {
		for range p.Layers.Full {
			g.blocks = append(g.blocks, p.take())
		}
		for range p.Layers.Windowed {
			h.windowed = append(h.windowed, p.take())
		}
	}
	for !p.Late && !p.Unshared && g.full < now/p.blockTokens {
		p.enter(g)
	}
	h.computed = now
	return true
}

// begin gives a grant its matched blocks.
func (p *Pool) begin(g *Grant) {
	for _, b := range g.match {
		if p.refs[b]++; p.refs[b] == 1 {
			p.unlink(b)
		}
	}
	p.begins(g, g.match, func(i int) uint64 { return p.keys[g.match[i]] },
		func(from, to int) { p.keep(g, g.match[from:to]) })
	h, full := &g.parts, g.parts.hit*p.Layers.Full
	g.blocks, h.windowed = append(g.blocks, g.match[:full]...), append(h.windowed, g.match[full:]...)
	g.full, h.rows, h.from = h.hit, h.hit, p.windowFrom(h.hit)
	h.computed, h.hit = h.hit*p.blockTokens, 0
	g.match, g.at = g.match[:0], 0
	g.chain = prefix.NewChain(g.pieces)
}

// enter adds the blocks of the next BlockTokens tokens of a grant to the index if their text is
// known.
func (p *Pool) enter(g *Grant) {
	g.full++
	if key, ok := g.chain.Key(g.full * p.blockTokens); ok {
		p.enterRow(g, key)
		p.version++
		if l := p.lower; l != nil {
			b := g.blocks[g.full-1]
			p.hits[b] = 0
			p.ends[b] = g.full%l.Chunk == 0 && g.full*p.blockTokens > g.stored
			if p.ends[b] && !l.Back && l.Hits == 0 && l.write(key) {
				p.keep(g, g.blocks[g.full-l.Chunk:g.full])
			}
		}
	}
}

// put adds a block to the index.
func (p *Pool) put(b int32, key uint64) {
	p.keys[b] = key
	p.index.Insert(p.keys, b)
}

// keep references the blocks of a grant's chunk until its save ends.
func (p *Pool) keep(g *Grant, blocks []int32) {
	for _, b := range blocks {
		p.refs[b]++
		g.written = p.kept.add(b, never)
	}
}

// take allocates a block that was never used, or the block at the head of the queue, whose content
// it evicts.
func (p *Pool) take() int32 {
	if n := len(p.refs); n < p.total {
		p.refs, p.keys = append(p.refs, 1), append(p.keys, 0)
		p.queue.grow()
		p.free--
		return int32(n)
	}
	b := p.queue.next[0] - 1
	p.unlink(b)
	p.refs[b] = 1
	if p.keys[b] != 0 {
		p.index.Remove(p.keys, b)
		if p.lower != nil && p.lower.Back && p.ends[b] {
			p.lower.write(p.keys[b])
		}
		p.keys[b] = 0
		p.version++
		p.evicted++
	}
	return b
}

// Release frees the grant of an ended or preempted request. The blocks keep their content until
// they are allocated again. If chunks of an ended request are being saved to the tiers below, all
// its blocks are released after the saves, so that the end of its text is evicted first. vLLM
// delays the free of such requests too.
func (p *Pool) Release(g *Grant, ended bool) {
	p.readers.end(g)
	switch {
	case p.Unshared:
		p.free += p.held(g)
	case ended && g.written > p.kept.ended:
		until := p.kept.held[len(p.kept.held)-1].until
		for _, b := range slices.Backward(slices.Concat(g.parts.windowed, g.blocks)) {
			p.kept.add(b, until)
		}
	default:
		for first := range p.Layers.Full { // as vLLM: one of the blocks of all rows after the other
			for row := g.parts.rows - 1; row >= 0; row-- {
				p.giveUp(g.blocks[row*p.Layers.Full+first])
			}
		}
		for _, b := range slices.Backward(g.parts.windowed) {
			p.giveUp(b)
		}
	}
	g.empty()
}

// Reread ends the step and returns the tokens that it reads repeatedly: for each block, the tokens
// of its readers minus one.
func (p *Pool) Reread() (tokens int64) {
	return p.readers.Reread() * int64(p.blockTokens) / int64(max(1, p.Layers.Full))
}

// giveUp removes one reference from a block and frees it if none is left.
func (p *Pool) giveUp(b int32) {
	if p.refs[b]--; p.refs[b] == 0 {
		p.link(b)
	}
	if p.refs[b] < 0 {
		panic(fmt.Sprintf("memory: block %d freed by more than hold it", b))
	}
}

func (p *Pool) unlink(b int32) {
	p.queue.unlink(b + 1)
	p.free--
}

// link appends a block to the queue.
func (p *Pool) link(b int32) {
	p.queue.append(b + 1)
	p.free++
}
