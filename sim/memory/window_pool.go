package memory

// WindowLayers describes a Pool of a model some of whose layers keep only a window of tokens, as in
// vLLM's hybrid KV cache manager. The number of layers of a block divides the layers of both kinds,
// so BlockTokens tokens of a request take a row of blocks: some of layers with the whole context,
// and, as long as they are in the window, some of layers with a window. Blocks that leave the
// window are freed with their content. A hit needs all blocks of the layers with the whole context,
// and the last window of the others.
type WindowLayers struct {
	Full, Windowed int // blocks of a row in layers of each kind
	Tokens         int // of the window
	Step           int // most tokens that a request computes in a step
}

// parts is what a grant holds besides the blocks of layers with the whole context.
type parts struct {
	rows     int     // granted
	windowed []int32 // blocks of layers with a window, in text order
	from     int     // rows before the first of windowed
	computed int     // tokens that are computed before the planned step
	hit      int     // rows that Match has found
}

// need returns the blocks of n rows, the first from of which have left the window. A layer with a
// window keeps at most the window and the tokens of a step.
func (p *Pool) need(n, from int) int {
	l := &p.Layers
	window := p.blocks(l.Tokens) + p.blocks(l.Step) + 2
	return n*l.Full + min(n-from, window)*l.Windowed
}

// windowFrom returns the number of rows before the window of a hit.
func (p *Pool) windowFrom(hit int) int { return max(0, hit-p.blocks(max(0, p.Layers.Tokens-1))) }

// endInWindow cuts a match to the longest hit that ends with a window in all layers, and appends
// the blocks of the window. It returns the number of rows.
func (p *Pool) endInWindow(g *Grant) (hit int) {
	l, texts := &p.Layers, p.texts
	for i, run := len(texts)-1, 0; i >= 0 && run < p.blocks(l.Tokens-1); i-- {
		at := len(g.match)
		if run++; !p.find(&g.match, texts[i], l.Full, l.Full+l.Windowed) {
			run, texts = 0, texts[:i]
		}
		g.match = g.match[:at]
	}
	hit = len(texts)
	g.match = g.match[:hit*l.Full]
	for _, text := range texts[p.windowFrom(hit):] {
		p.find(&g.match, text, l.Full, l.Full+l.Windowed)
	}
	return hit
}

// slide frees the blocks that no token from the next one on attends to. The end of a text is
// evicted first.
func (p *Pool) slide(g *Grant) {
	h, l := &g.parts, &p.Layers
	if l.Windowed == 0 {
		return
	}
	gone := min(max(h.from, (h.computed-l.Tokens+1)/p.blockTokens), h.rows)
	n := (gone - h.from) * l.Windowed
	if h.from = gone; p.Unshared {
		p.free += n
		return
	}
	for i := n - 1; i >= 0; i-- {
		p.giveUp(h.windowed[i])
	}
	h.windowed = h.windowed[:copy(h.windowed, h.windowed[n:])]
}

// enterRow adds the blocks of the newest row to the index.
func (p *Pool) enterRow(g *Grant, text uint64) {
	h, l, at := &g.parts, &p.Layers, g.full-1
	for i, b := range g.blocks[at*l.Full:][:l.Full] {
		p.put(b, key(text, i))
	}
	if at >= h.from {
		for i, b := range h.windowed[(at-h.from)*l.Windowed:][:l.Windowed] {
			p.put(b, key(text, l.Full+i))
		}
	}
}
