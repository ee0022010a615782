package memory

// WindowLayers describes a Pool of a model some of whose layers keep only a window of tokens, as in
// vLLM's hybrid KV cache manager. The number of layers of a block divides the layers of both kinds,
// so BlockTokens tokens of a request take several blocks: some of layers with the whole context,
// and, as long as they are in the window, some of layers with a window. Blocks that leave the
// window are freed with their content. A hit needs all blocks of the layers with the whole context,
// and the last window of the others.
type WindowLayers struct {
	Full, Windowed int // blocks that BlockTokens tokens take in layers of each kind
	Tokens         int // of the window
	Step           int // most tokens that a request computes in a step
}

// parts is what a table holds besides the first block of each BlockTokens tokens.
type parts struct {
	full     []int32 // further blocks of layers with the whole context, in text order
	windowed []int32 // blocks of layers with a window, in text order
	from     int     // BlockTokens tokens before the first of windowed
	computed int     // tokens that are computed before the planned step
	hit      int     // BlockTokens tokens that Match has found
}

// need returns the blocks of n times BlockTokens tokens, the first from of which have left the
// window. A layer with a window keeps at most the window and the tokens of a step.
func (p *Pool) need(n, from int) int {
	l := &p.Layers
	window := p.blocks(l.Tokens) + p.blocks(l.Step) + 2
	return n*l.Full + min(n-from, window)*l.Windowed
}

// windowFrom returns the number of BlockTokens tokens before the window of a hit.
func (p *Pool) windowFrom(hit int) int { return max(0, hit-p.blocks(max(0, p.Layers.Tokens-1))) }

// endInWindow cuts a match to the longest hit that ends with a window in all layers, and appends
// the blocks of the window. It returns the number of BlockTokens tokens.
func (p *Pool) endInWindow(t *Table) (hit int) {
	l, texts := &p.Layers, p.texts
	for i, run := len(texts)-1, 0; i >= 0 && run < p.blocks(l.Tokens-1); i-- {
		at := len(t.match)
		if run++; !p.find(&t.match, texts[i], l.Full, l.Full+l.Windowed) {
			run, texts = 0, texts[:i]
		}
		t.match = t.match[:at]
	}
	hit = len(texts)
	t.match = t.match[:hit*l.Full]
	for _, text := range texts[p.windowFrom(hit):] {
		p.find(&t.match, text, l.Full, l.Full+l.Windowed)
	}
	return hit
}

// slide frees the blocks that no token from the next one on attends to. The end of a text is
// evicted first.
func (p *Pool) slide(t *Table) {
	h, l := &t.parts, &p.Layers
	if l.Windowed == 0 {
		return
	}
	gone := min(max(h.from, (h.computed-l.Tokens+1)/p.blockTokens), len(t.blocks))
	n := (gone - h.from) * l.Windowed
	for i := n - 1; i >= 0; i-- {
		p.giveUp(h.windowed[i])
	}
	h.windowed, h.from = h.windowed[:copy(h.windowed, h.windowed[n:])], gone
}

// enterParts adds the further blocks of the newest BlockTokens tokens in the index.
func (p *Pool) enterParts(t *Table, text uint64) {
	h, l, at := &t.parts, &p.Layers, t.full-1
	for i, b := range h.full[at*(l.Full-1):][:l.Full-1] {
		p.put(b, key(text, 1+i))
	}
	if l.Windowed > 0 && at >= h.from {
		for i, b := range h.windowed[(at-h.from)*l.Windowed:][:l.Windowed] {
			p.put(b, key(text, l.Full+i))
		}
	}
}
