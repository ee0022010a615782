package memory

import "github.com/sparseserve/sparseserve/sim/prefix"

// WindowPool is a Pool for models some of whose layers keep only a window of tokens, as vLLM's
// hybrid KV cache manager. The number of layers of a block divides the layers of both kinds, so
// BlockTokens tokens of a request take several blocks: some of layers with the whole context, and,
// as long as they are in the window, some of layers with a window. Blocks that leave the window are
// freed with their content. A hit needs all blocks of the layers with the whole context, and the
// last window of the others.
type WindowPool struct {
	*Pool
	layers WindowLayers
}

// WindowLayers describes the layers of a WindowPool.
type WindowLayers struct {
	Full, Windowed int // blocks that BlockTokens tokens take in layers of each kind
	Tokens         int // of the window
	Step           int // most tokens that a request computes in a step
}

// NewWindowPool returns a pool of total blocks. Admit keeps the watermark share of them free.
func NewWindowPool(total int64, blockTokens int, watermark float64, l WindowLayers) *WindowPool {
	return &WindowPool{NewPool(total, blockTokens, watermark, nil), l}
}

// parts is what a table holds besides the first block of each BlockTokens tokens.
type parts struct {
	full     []int32 // further blocks of layers with the whole context, in text order
	windowed []int32 // blocks of layers with a window, in text order
	from     int     // BlockTokens tokens before the first of windowed
	computed int     // tokens that are computed before the planned step
	hit      int     // BlockTokens tokens that Match has found
}

// window returns how many times BlockTokens tokens a layer with a window keeps at most, with those
// of a step.
func (p *WindowPool) window() int { return p.blocks(p.layers.Tokens) + p.blocks(p.layers.Step) + 2 }

// Fits reports whether a request of the given tokens could ever be admitted.
func (p *WindowPool) Fits(tokens int) bool {
	n := p.blocks(tokens)
	return len(p.refs)-n*p.layers.Full-min(n, p.window())*p.layers.Windowed >= p.watermark
}

// Tokens returns the number of tokens of one request that n blocks hold.
func (p *WindowPool) Tokens(n int64) int64 {
	l := &p.layers
	w := &Budget{blockTokens: p.blockTokens, windows: Windows{Layers: int64(l.Windowed),
		Full: int64(l.Full), Blocks: int64(p.blocks(l.Tokens) + 1)}}
	return w.Tokens(n)
}

// key returns the key of the i-th block of a text's tokens: first those of layers with the whole
// context.
func (p *WindowPool) key(text uint64, i int) uint64 {
	if i == 0 {
		return text
	}
	return prefix.Mix(text, uint64(i))
}

// find appends blocks [from, to) of a text's tokens if the pool has them all.
func (p *WindowPool) find(to []int32, text uint64, from, end int) (found []int32, ok bool) {
	for i := from; i < end; i++ {
		b := p.index.Find(p.keys, p.key(text, i))
		if b < 0 {
			return to, false
		}
		to = append(to, b)
	}
	return to, true
}

// Match returns the number of leading tokens of a new prefill whose KV is in the pool, or will be
// when the planned step has run.
func (p *WindowPool) Match(g *Grant, target int) int {
	t, l := g.Table, &p.layers
	if t.at == p.version {
		return t.parts.hit * p.blockTokens
	}
	t.match, t.at, t.parts.hit = t.match[:0], p.version, 0
	chain := prefix.NewChain(t.pieces)
	var texts []uint64
	for n := p.blockTokens; n < target; n += p.blockTokens {
		key, known := chain.Key(n)
		if !known {
			break
		}
		if _, ok := p.find(t.match[:0], key, 0, l.Full); !ok {
			break
		}
		texts = append(texts, key)
	}
	// The longest hit that ends with a window in all layers.
	needs, run := p.blocks(l.Tokens-1), 0
	for i := len(texts) - 1; i >= 0 && run < needs; i-- {
		if _, ok := p.find(t.match[:0], texts[i], l.Full, l.Full+l.Windowed); !ok {
			run, texts = 0, texts[:i]
			continue
		}
		run++
	}
	t.parts.hit = len(texts)
	for i, key := range texts {
		t.match, _ = p.find(t.match, key, 0, l.Full)
		if i >= len(texts)-needs {
			t.match, _ = p.find(t.match, key, l.Full, l.Full+l.Windowed)
		}
	}
	return t.parts.hit * p.blockTokens
}

// Admit grants blocks for the given tokens if the watermark stays free. Grow may use the last
// block. The planned step computes the first now tokens.
func (p *WindowPool) Admit(g *Grant, tokens, now int) bool {
	return p.grant(g.Table, tokens, now, p.watermark)
}

func (p *WindowPool) Grow(g *Grant, tokens, now int) bool {
	return p.grant(g.Table, tokens, now, 0)
}

// Room reports whether the queue has enough blocks to extend a grant to the given tokens.
func (p *WindowPool) Room(g *Grant, tokens int) bool {
	return p.remain(g.Table, tokens) >= 0
}

// remain returns the number of free blocks that are left after a grant to the given tokens.
func (p *WindowPool) remain(t *Table, tokens int) int {
	held := len(t.blocks) + len(t.parts.full) + len(t.parts.windowed)
	if held == 0 {
		held = len(t.match) - p.idle(t.match)
	}
	n, from := p.blocks(tokens), t.parts.from
	if len(t.blocks) == 0 {
		from = max(0, t.parts.hit-p.blocks(p.layers.Tokens-1))
	}
	return p.free - (n*p.layers.Full + min(n-from, p.window())*p.layers.Windowed - held)
}

func (p *WindowPool) grant(t *Table, tokens, now, keep int) bool {
	h, l, n := &t.parts, &p.layers, p.blocks(tokens)
	begins := len(t.blocks) == 0
	if !begins {
		p.slide(t)
	}
	if (begins || n > len(t.blocks)) && p.remain(t, tokens) < keep {
		return false
	}
	if begins {
		p.begin(t)
	}
	for len(t.blocks) < n {
		t.blocks = append(t.blocks, p.take())
		for range l.Full - 1 {
			h.full = append(h.full, p.take())
		}
		for range l.Windowed {
			h.windowed = append(h.windowed, p.take())
		}
	}
	for t.full < now/p.blockTokens {
		p.enter(t)
	}
	h.computed = now
	return true
}

// slide frees the blocks that no token from the next one on attends to. The end of a text is
// evicted first.
func (p *WindowPool) slide(t *Table) {
	h, l := &t.parts, &p.layers
	gone := min(max(h.from, (h.computed-l.Tokens+1)/p.blockTokens), len(t.blocks))
	n := (gone - h.from) * l.Windowed
	for i := n - 1; i >= 0; i-- {
		p.giveUp(h.windowed[i])
	}
	h.windowed, h.from = h.windowed[:copy(h.windowed, h.windowed[n:])], gone
}

// begin gives a table its matched blocks.
func (p *WindowPool) begin(t *Table) {
	h, l := &t.parts, &p.layers
	for _, b := range t.match {
		if p.refs[b]++; p.refs[b] == 1 {
			p.unlink(b)
		}
	}
	h.from = max(0, h.hit-p.blocks(l.Tokens-1))
	for i, rest := 0, t.match; i < h.hit; i++ {
		t.blocks, h.full = append(t.blocks, rest[0]), append(h.full, rest[1:l.Full]...)
		if rest = rest[l.Full:]; i >= h.from {
			h.windowed, rest = append(h.windowed, rest[:l.Windowed]...), rest[l.Windowed:]
		}
	}
	t.full, h.computed = h.hit, h.hit*p.blockTokens
	t.match, t.at, h.hit = t.match[:0], 0, 0
	t.chain = prefix.NewChain(t.pieces)
}

// enter adds the blocks of the next BlockTokens tokens to the index if their text is known.
func (p *WindowPool) enter(t *Table) {
	h, l, at := &t.parts, &p.layers, t.full
	t.full++
	text, ok := t.chain.Key(t.full * p.blockTokens)
	if !ok {
		return
	}
	put := func(b int32, i int) {
		p.keys[b] = p.key(text, i)
		p.index.Insert(p.keys, b)
	}
	put(t.blocks[at], 0)
	for i, b := range h.full[at*(l.Full-1):][:l.Full-1] {
		put(b, 1+i)
	}
	if at >= h.from {
		for i, b := range h.windowed[(at-h.from)*l.Windowed:][:l.Windowed] {
			put(b, l.Full+i)
		}
	}
	p.version++
}

// Release frees the grant of an ended or preempted request. The blocks keep their content until
// they are allocated again.
func (p *WindowPool) Release(g *Grant, _ bool) {
	t, h := g.Table, &g.Table.parts
	p.readers.end(t)
	for _, blocks := range [][]int32{t.blocks, h.full, h.windowed} {
		for i := len(blocks) - 1; i >= 0; i-- {
			p.giveUp(blocks[i])
		}
	}
	t.blocks, t.full, t.at = t.blocks[:0], 0, 0
	*h = parts{full: h.full[:0], windowed: h.windowed[:0]}
}
