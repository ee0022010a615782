package live

import (
	"math"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live/mem"
	"github.com/sparseserve/sparseserve/sim"
)

// decodes is what decode attention of every layer needs to know of the step.
type decodes struct {
	n       int
	most    int      // blocks of the longest context
	context cuda.Ptr // int32 [n] tokens
	open    cuda.Ptr // int32 [n] index of the block that the newest token goes to
	table   cuda.Ptr // int32 [n][most] pages, without offloading
	// Of selection, when sparse.
	blocks   cuda.Ptr // int32 [n][KVHeads] that exist
	digests  cuda.Ptr // int32 [n][KVHeads] that are full
	metaBase cuda.Ptr // lowest address of a request's digests, from which they are counted
}

// beginDecodes uploads it.
func (d *Device) beginDecodes(s *sim.Step) {
	c := &d.decodes
	*c = decodes{}
	for i := range s.Rows {
		if s.Rows[i].Decode {
			c.n++
			c.most = max(c.most, d.geo.Blocks(s.Rows[i].To))
		}
	}
	if c.n == 0 {
		return
	}
	words, at := d.stage.Words(2 * c.n)
	c.context, c.open = at, at+cuda.Ptr(4*c.n)
	for i := range c.n {
		words[i], words[c.n+i] = int32(s.Rows[i].To), int32((s.Rows[i].To-1)/d.geo.BlockTokens)
	}
	if !d.offload {
		table, at := d.stage.Words(c.n * c.most)
		c.table = at
		for i := range c.n {
			copy(table[i*c.most:], d.of[i].pages)
		}
	}
	if d.lookup.on {
		d.beginLookup()
	}
	if d.sparse {
		d.beginSelection(s)
	}
}

// attend writes K and V of the layer's tokens to their blocks, where ready has not, digests and
// saves the blocks that became full, and runs attention of all rows: first, where the layer only
// decodes. Prefills' Q and K are rotated here, where the slots of their blocks are known: the same
// kernel writes K and V.
func (d *Device) attend(layer int, w *sim.Work) {
	d.planLayer(layer, w)
	if d.queue.Err() != nil {
		return
	}
	d.stage.Send() // the layer's one upload
	d.awaitLate()
	d.lookUp(layer)
	if d.offload && w.Sparse && w.Decodes > 0 && !d.lookup.on {
		d.clock.mark(phaseHost) // the layer's round trip ends: all that its launches need is there
	}
	d.startLoads()
	d.attention(layer, w, d.closeBlocks)
}

// attention launches what the layer's plan has of it, and closing.
func (d *Device) attention(layer int, w *sim.Work, closing func(layer int)) {
	p := &d.plan
	d.loadPrefixes(layer)
	d.launch(p.opens...)
	d.launch(p.writes...)
	d.launch(p.ropes...)
	d.markAfter(p.ropes, phaseLinears)
	d.showProjected(layer)
	// Attention of a layer that only decodes waits for each launch before its own: blocks are closed
	// after it. Others take longer, and a prompt's blocks are saved meanwhile.
	late := len(w.Prefill) == 0 && len(w.Rounds) == 0
	if !late {
		closing(layer)
	}
	if len(w.Rounds) > 0 { // first: its loads restore prefixes of prefills that had been preempted
		d.attendRounds(layer)
	}
	for _, digests := range [...][]cuda.Operation{d.hits.digests, p.hits} {
		d.launch(digests...)
		d.markAfter(digests, phaseScoring)
	}
	d.attendPrefills(layer)
	switch {
	case w.Decodes == 0 || len(w.Rounds) > 0:
	case w.Sparse:
		d.launch(p.decode)
		d.clock.mark(phaseSparse)
	default:
		d.launch(p.decode)
		d.clock.mark(phaseDense)
	}
	if late {
		closing(layer)
	}
}

// planLayer writes the arrays of all that the layer's attention launches.
func (d *Device) planLayer(layer int, w *sim.Work) {
	d.plan.clear()
	d.nameHits(layer)
	if w.Decodes > 0 {
		d.planDecodes(layer, w)
	}
	for i := range w.Prefill {
		d.planPrefill(layer, w.Tables[i].Row, &w.Tables[i])
	}
	d.planClosed(layer)
}

// launch enqueues operations on the stream that computes. The queue keeps their failures.
func (d *Device) launch(ops ...cuda.Operation) {
	for _, op := range ops {
		_ = d.queue.Launch(op, d.stream)
	}
}

// markAfter ends a phase if there were operations in it.
func (d *Device) markAfter(ops []cuda.Operation, p phase) {
	if len(ops) > 0 {
		d.clock.mark(p)
	}
}

// plan is what one layer's attention launches once its arrays are on the GPU.
type plan struct {
	opens   []cuda.Operation // open blocks of finished layer-segmented prefills, into their slots
	writes  []cuda.Operation // K and V of decodes
	ropes   []cuda.Operation // of prefills
	stashes []cuda.Operation // open blocks of running prefills, into their stash
	hits    []cuda.Operation // digests of prefixes that chunked prefills begin with

	closed []closed
	saves  []part     // of closed, in order
	begun  []closed   // prefixes that chunked prefills begin with, of hits
	tables []rowSlots // of prefills, without what the server says of them
	passes []pass     // of prefills
	decode *cuda.DecodeArgs
}

func (p *plan) clear() {
	p.opens, p.writes, p.ropes = p.opens[:0], p.writes[:0], p.ropes[:0]
	p.stashes, p.hits, p.passes = p.stashes[:0], p.hits[:0], p.passes[:0]
	p.closed, p.saves, p.begun, p.tables = p.closed[:0], p.saves[:0], p.begun[:0], p.tables[:0]
}

// layerPool is where the layer's slots begin: without offloading each layer has its own part.
func (d *Device) layerPool(layer int) cuda.Ptr {
	if d.offload {
		return d.pool
	}
	return d.pool + cuda.Ptr(int64(layer)*int64(d.hbmPages()*d.geo.KVHeads)*d.geo.BlockBytes)
}

func (d *Device) scale() float32 { return float32(1 / math.Sqrt(float64(d.model.HeadDim))) }

// decodeArgs are the arguments of the layer's decodes that no list or selection determines: of the
// write of their newest tokens, and of their attention.
func (d *Device) decodeArgs(layer int) (*cuda.KVWriteArgs, *cuda.DecodeArgs) {
	c, md, b := &d.decodes, d.model, &d.scratch
	write := (*cuda.KVWriteArgs)(d.decodeWrite(layer))
	a := &cuda.DecodeArgs{
		Q: b.q.At, Pool: write.Pool, Context: c.context, Out: b.attn.At,
		Batch: int32(c.n), HeadsQ: int32(md.HeadsQ), HeadsKV: int32(md.HeadsKV),
		HeadDim: int32(md.HeadDim), BlockTokens: int32(d.geo.BlockTokens),
		MaxBlocks: int32(c.most), Scale: d.scale(),
	}
	return write, a
}

// planDecodes prepares the decodes' part of a layer.
func (d *Device) planDecodes(layer int, w *sim.Work) {
	c, p, b := &d.decodes, &d.plan, &d.scratch
	write, a := d.decodeArgs(layer)
	p.decode = a
	if !d.offload {
		a.Table, a.TableStride, a.Pages = c.table, int32(c.most), 1
	}
	switch {
	case w.Lists != nil:
		d.planLists(layer, w.Lists, write)
	case w.Sparse && d.cfg.Selects: // what Score chose has not left the GPU
		a.Count, a.List, a.ListStride = b.count.At, b.list.At, int32(d.budget)
		a.MaxBlocks = int32(min(d.budget, c.most))
	}
	if d.offload { // else ready has written
		p.writes = append(p.writes, write)
	}
	d.planFilled(write.Pool)
	if len(w.Rounds) > 0 {
		d.countRounds(w.Lists)
	}
	if d.lookup.on {
		d.planLookup(layer)
	}
	if len(w.Rounds) > 0 {
		d.planRounds(layer, w.Lists)
		return
	}
	a.Workspace = d.workspaceFor(a, &d.workspace, "decode workspace")
}

// planFilled notes the blocks that the decodes' tokens fill.
func (d *Device) planFilled(pool cuda.Ptr) {
	heads := d.geo.KVHeads
	for i := range d.decodes.n {
		row := &d.rows[i]
		if row.To%d.geo.BlockTokens != 0 {
			continue
		}
		block := row.To/d.geo.BlockTokens - 1
		k := closed{req: d.of[i], pool: pool, from: block, to: block + 1, page: !d.offload}
		if d.offload {
			k.slots, k.first, k.stride = d.open[i*heads:][:heads], block, 1
		}
		d.plan.closed = append(d.plan.closed, k)
	}
}

// workspaceFor returns the scratch memory of an operation, in a buffer that grows.
func (d *Device) workspaceFor(op cuda.Operation, b *mem.Buffer, what string) cuda.Ptr {
	bytes, err := d.m.Workspace(op)
	d.queue.Fail(err)
	d.growZeroed(b, bytes, what)
	return b.At
}

// planLists sets which blocks each unit attends to and, with offloading, their slots. They are
// uploaded from where the server wrote them, and only where something has changed.
func (d *Device) planLists(layer int, l *sim.Lists, write *cuda.KVWriteArgs) {
	c, heads := &d.decodes, d.geo.KVHeads
	a, k := d.plan.decode, d.lookup.args
	a.MaxBlocks = d.countSelected(l)
	d.readLists(l, write, a)
	if !d.offload {
		return
	}
	if k.Named, k.First = a.Count, d.listed(l.FirstRound); l.ListedAhead != nil {
		k.Named = d.listed(l.ListedAhead)
	}
	d.open = l.Open
	for i := range c.n {
		if d.stashedOpen(i) {
			d.planOpen(layer, d.of[i], l.Open[i*heads:][:heads])
		}
	}
}

// countSelected counts the blocks of a layer's lists and returns the most of one.
func (d *Device) countSelected(l *sim.Lists) (most int32) {
	for _, n := range l.Count[:d.decodes.n*d.geo.KVHeads] {
		d.counters.Selected += int64(n)
		most = max(most, n)
	}
	return most
}

// readLists has the write and the attention of the layer's decodes read the lists.
func (d *Device) readLists(l *sim.Lists, write *cuda.KVWriteArgs, a *cuda.DecodeArgs) {
	heads := d.geo.KVHeads
	units := d.decodes.n * heads
	a.ListStride = int32(l.Stride)
	a.Count, a.List = d.listed(l.Count[:units]), d.listed(l.Block[:units*l.Stride])
	a.Slot, write.Table = d.listed(l.Slot), d.listed(l.Open)
	if d.offload {
		write.First, write.RowStride, write.HeadStride = d.decodes.open, int64(heads), 1
	}
}

// stashedOpen tells whether the open block of a decode has to come from its prefill's stash first.
func (d *Device) stashedOpen(i int) bool {
	return d.of[i].stashed && d.rows[i].From%d.geo.BlockTokens != 0
}

// listed returns where the server's words are on the GPU: in the layer's part, or copied.
func (d *Device) listed(words []int32) cuda.Ptr {
	if at, lent := d.stage.Lent(words); lent || len(words) == 0 {
		return at
	}
	own, at := d.stage.Words(len(words))
	copy(own, words)
	return at
}

// Buffer implements sim.ListMemory.
func (d *Device) Buffer(layer, words int) []int32 { return d.stage.Lend(layer, words) }
