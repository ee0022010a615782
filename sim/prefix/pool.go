package prefix

import (
	"fmt"
	"math"
	"slices"
)

// Pool is the blocks of HBM under automatic prefix caching as vLLM V1 has it:
//
//   - A block that is full, or will be when the step that is planned has run, is found by the key
//     of its text from the first token on. Blocks of equal text are not merged.
//   - Blocks that nobody holds are in a queue. New blocks are taken from its head and lose their
//     content then; freed ones go to its tail, those of the end of a text first, so that of one
//     text the end is lost first.
//   - A hit takes its blocks out of the queue, or shares them with those who hold them. It ends at
//     the first block that is not found, and before the last token, whose logits are needed.
//
// Not safe for concurrent use; no call allocates in steady state.
type Pool struct {
	blockTokens int
	watermark   int
	free        int // blocks in the queue
	least       int // of free, so far
	left        int // free blocks beyond those that Room found last, for the table asker
	asker       *Table
	refused     bool // room, at least once
	refs        []int32
	keys        []uint64 // 0: no content
	next, prev  []int32  // of the queue, whose head and tail are the last element's
	index       index
	version     uint64 // of keys and of the blocks in use
	below[int32]

	// Late has blocks be found once Enter names them, not when they are planned: what is computed
	// has a way to go until it is where others can have it.
	Late bool
	late []saving // blocks that were given up while they are saved
	// Requests that have ended and of whose blocks some are still being saved give all up together
	// then, so that the end of a text is lost first, as vLLM delays the free of such requests.
	parting holds[[]int32]
	spare   [][]int32
	readers
}

// NewPool returns a pool of total blocks of which the given share is kept free by Admit.
func NewPool(total int64, blockTokens int, watermark float64, lower *Lower) *Pool {
	n := int(total)
	p := &Pool{
		blockTokens: blockTokens, watermark: int(watermark * float64(total)), free: n, least: n,
		refs: make([]int32, n), keys: make([]uint64, n),
		next: make([]int32, n+1), prev: make([]int32, n+1), index: newIndex(n), version: 1,
		below: newBelow[int32](lower, total),
	}
	for i := range p.next {
		p.next[i], p.prev[i] = int32((i+1)%(n+1)), int32((i+n)%(n+1))
	}
	return p
}

func (p *Pool) blocks(tokens int) int { return (tokens + p.blockTokens - 1) / p.blockTokens }

// Fits says whether a request of that many tokens could ever be admitted.
func (p *Pool) Fits(tokens int) bool { return len(p.refs)-p.blocks(tokens) >= p.watermark }

// Used and Total count blocks; used ones are those that requests hold.
func (p *Pool) Used() int64  { return int64(len(p.refs) - p.free) }
func (p *Pool) Total() int64 { return int64(len(p.refs)) }

// Tokens returns the number of tokens that n blocks hold.
func (p *Pool) Tokens(n int64) int64 { return n * int64(p.blockTokens) }

// Match returns how many of the first tokens of a prefill that has not begun have their KV in the
// pool, or will have it when the step runs that is planned.
func (p *Pool) Match(g *Grant, target int) int {
	t := g.Table
	if len(t.blocks) > 0 { // has been loaded
		return t.full * p.blockTokens
	}
	if t.at != p.version {
		t.match, t.at = t.match[:0], p.version
		chain := NewChain(t.pieces)
		for n := p.blockTokens; n < target; n += p.blockTokens {
			key, ok := chain.Key(n)
			if !ok {
				break
			}
			b := p.index.find(p.keys, key)
			if b < 0 {
				break
			}
			t.match = append(t.match, b)
		}
	}
	return p.lower.match(t, len(t.match), p.blockTokens, target)
}

// Fetch says whether what Match found has to be loaded before the prefill begins, and grants the
// room for it; ok is false where there is none.
func (p *Pool) Fetch(g *Grant) (loads, ok bool) {
	t := g.Table
	if p.lower == nil || !p.lower.Async || len(t.blocks) > 0 || t.load.Tokens == 0 {
		return false, true
	}
	return true, p.grant(t, len(t.match)*p.blockTokens+t.load.Tokens, 0, 0)
}

// Landed has others find what a request has loaded.
func (p *Pool) Landed(g *Grant) {
	for t := g.Table; t.full < len(t.blocks); {
		p.enter(t)
	}
}

// Admit grants blocks for the given tokens if the watermark remains free, of which the step that
// is planned computes the first now tokens.
func (p *Pool) Admit(g *Grant, tokens, now int) bool {
	return p.grant(g.Table, tokens, now, p.watermark)
}

// Grow extends a grant to the given tokens, down to the last block. The step that is planned
// computes them.
func (p *Pool) Grow(g *Grant, tokens int) bool {
	granted := p.grant(g.Table, tokens, tokens, 0)
	if granted && g.Table == p.asker { // with fewer blocks Room's answer would have been no
		p.least, p.asker = min(p.least, p.left), nil
	}
	return granted
}

// Room reports whether the queue has the blocks that would extend a grant to the given tokens. A
// block that Match found in the queue is one of them.
func (p *Pool) Room(g *Grant, tokens int) bool {
	t := g.Table
	held := len(t.blocks)
	if held == 0 {
		held = len(t.match) - p.idle(t.match)
	}
	need := p.blocks(tokens) - held
	if need > p.free {
		p.refused = true
		return false
	}
	p.left, p.asker = p.free-need, t
	return true
}

// Enough is a total that would have been enough so far where no request found another's KV; ok is
// false where a request was refused room.
func (p *Pool) Enough() (total int64, ok bool) {
	keep := float64(p.watermark+1) / float64(len(p.refs)) // share that stays free, rounded up
	total = int64(len(p.refs))
	if n := math.Ceil(float64(len(p.refs)-p.least+1) / (1 - keep)); keep < 1 && n < float64(total) {
		total = int64(n)
	}
	return total, !p.refused
}

// idle counts the blocks of a match that no request holds.
func (p *Pool) idle(match []int32) (n int) {
	for _, b := range match {
		if p.refs[b] == 0 {
			n++
		}
	}
	return n
}

func (p *Pool) grant(t *Table, tokens, now, keep int) bool {
	if len(t.blocks) == 0 {
		if !p.begin(t, tokens, keep) {
			return false
		}
	}
	need := p.blocks(tokens) - len(t.blocks)
	if need > 0 {
		if p.free-need < keep {
			p.refused = true
			return false
		}
		for range need {
			t.blocks = append(t.blocks, p.take())
		}
	}
	for !p.Late && t.full < now/p.blockTokens {
		p.enter(t)
	}
	return true
}

// Enter has the first so many blocks of a table be found by others.
func (p *Pool) Enter(t *Table, blocks int) {
	for t.full < blocks {
		p.enter(t)
	}
}

// begin gives a table the blocks that Match found, if there are those that it needs besides.
func (p *Pool) begin(t *Table, tokens, keep int) bool {
	if p.free-p.idle(t.match)-(p.blocks(tokens)-len(t.match)) < keep {
		p.refused = true
		return false
	}
	for _, b := range t.match {
		if p.refs[b]++; p.refs[b] == 1 {
			p.unlink(b)
		}
	}
	if p.lower != nil {
		p.lower.begins(t.own)
		p.lower.take(t) // before a chunk that is written takes its place
		for i := range t.match {
			if p.lower.Hits > 0 && p.hit(t.match[:i+1]) {
				t.written = i + 1
			}
		}
		// A use in HBM is one below, of the end of the text first.
		for i := len(t.match) / p.lower.Chunk * p.lower.Chunk; i > 0; i -= p.lower.Chunk {
			p.lower.touch(p.keys[t.match[i-1]])
		}
		t.load, t.loaded = Load{}, t.load
	}
	t.blocks, t.full = append(t.blocks, t.match...), len(t.match)
	t.match = t.match[:0]
	t.at = 0
	t.chain = NewChain(t.pieces)
	return true
}

// enter puts the next block of a table into the index, if its text is known.
func (p *Pool) enter(t *Table) {
	b := t.blocks[t.full]
	t.full++
	if key, ok := t.chain.Key(t.full * p.blockTokens); ok {
		p.keys[b] = key
		p.index.insert(p.keys, b)
		p.version++
		if l := p.lower; l != nil {
			p.hits[b] = 0
			p.ends[b] = t.full%l.Chunk == 0 && t.full*p.blockTokens > t.stored
			if p.ends[b] && !l.Back && l.Hits == 0 && l.write(key) {
				p.keep(t.blocks[t.full-l.Chunk : t.full])
				t.written = t.full
			}
		}
	}
}

// hit counts a hit of the last block of a text, with which its chunk may be due to be written.
func (p *Pool) hit(text []int32) (written bool) {
	b := text[len(text)-1]
	if p.hits[b] < math.MaxUint8 {
		p.hits[b]++
	}
	l := p.lower
	if !p.ends[b] || int(p.hits[b]) != l.Hits || l.Back || !l.write(p.keys[b]) {
		return false
	}
	p.keep(text[len(text)-l.Chunk:])
	return true
}

// keep holds the blocks of a chunk that is to be saved.
func (p *Pool) keep(blocks []int32) {
	for _, b := range blocks {
		p.refs[b]++
		p.kept.add(b)
	}
}

// take returns a block of the queue, which loses its content.
func (p *Pool) take() int32 {
	b := p.next[len(p.refs)]
	p.unlink(b)
	p.refs[b] = 1
	if p.keys[b] != 0 {
		p.index.remove(p.keys, b)
		if p.lower != nil && p.lower.Back && p.ends[b] {
			p.lower.write(p.keys[b])
		}
		p.keys[b] = 0
		p.version++
		p.evicted++
	}
	return b
}

// Release returns a grant, of a request that has ended or is preempted. What its blocks contain
// stays until they are taken.
func (p *Pool) Release(g *Grant, ended bool) {
	t := g.Table
	p.readers.end(t)
	if ended && p.saves(t) {
		p.parting = append(p.parting, held[[]int32]{t.blocks, p.kept[len(p.kept)-1].until})
		t.blocks = nil
		if n := len(p.spare); n > 0 {
			t.blocks, p.spare = p.spare[n-1], p.spare[:n-1]
		}
		t.full, t.written, t.saving, t.loaded = 0, 0, 0, Load{}
		return
	}
	before := p.hold(t)
	for i := len(t.blocks) - 1; i >= 0; i-- {
		if i < before || i >= t.saving {
			p.giveUp(t.blocks[i])
		}
	}
	t.blocks, t.full, t.written, t.saving, t.loaded = t.blocks[:0], 0, 0, 0, Load{}
}

// saves says whether a chunk of a table is still being saved to the tiers below.
func (p *Pool) saves(t *Table) bool {
	if t.written == 0 || len(t.blocks) < t.written || p.refs[t.blocks[t.written-1]] < 2 {
		return false
	}
	last := t.blocks[t.written-1]
	return slices.ContainsFunc(p.kept, func(k held[int32]) bool { return k.what == last })
}

// part gives up the blocks of a request that had ended before.
func (p *Pool) part(blocks []int32) {
	for _, b := range slices.Backward(blocks) {
		p.giveUp(b)
	}
	p.spare = append(p.spare, blocks[:0])
}

// giveUp ends one request's hold of a block.
func (p *Pool) giveUp(b int32) {
	if p.refs[b]--; p.refs[b] == 0 {
		p.link(b)
	}
	if p.refs[b] < 0 {
		panic(fmt.Sprintf("prefix: block %d freed by more than hold it", b))
	}
}

func (p *Pool) unlink(b int32) {
	next, prev := p.next[b], p.prev[b]
	p.next[prev], p.prev[next] = next, prev
	p.free--
	p.least = min(p.least, p.free)
}

// link appends a block to the queue.
func (p *Pool) link(b int32) {
	end := int32(len(p.refs))
	last := p.prev[end]
	p.next[last], p.prev[b], p.next[b], p.prev[end] = b, last, end, b
	p.free++
}
