package live

import (
	"math"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live/mem"
	"github.com/sparseserve/sparseserve/sim"
)

// decodes is the input of all layers' decode attention in a step.
type decodes struct {
	n       int
	most    int      // blocks of the longest context
	context cuda.Ptr // int32 [n] tokens
	open    cuda.Ptr // int32 [n] index of the block that the newest token goes to
	table   cuda.Ptr // int32 [n][most] pages, without offloading
	// Of selection, when sparse.
	blocks   cuda.Ptr // int32 [n][KVHeads] that exist
	digests  cuda.Ptr // int32 [n][KVHeads] that are full
	first    cuda.Ptr // int64 [layers][n][KVHeads] index of the unit's first digest
	metaBase cuda.Ptr // lowest address of a request's digests, from which they are counted
}

// beginDecodes uploads the input of the step's decode attention.
func (d *paged) beginDecodes(s *sim.Step) {
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

// attend implements attention: it writes K and V of the layer's tokens to their blocks, if project
// has not, digests and saves full blocks, and runs the attention of all rows. In a layer with
// decodes only, attention comes before digests and saves. Q and K of prefills are rotated here,
// where the slots of their blocks are known, because the same kernel writes K and V.
func (d *paged) attend(layer int, w *sim.Work) {
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
	d.attendPlanned(layer, w)
	d.nameHits(layer + 1)
}

// attendPlanned launches the attention of the layer's plan, and closes full blocks.
func (d *paged) attendPlanned(layer int, w *sim.Work) {
	p := &d.plan
	d.loadPrefixes(layer)
	d.launch(p.opens...)
	d.launch(p.writes...)
	d.launch(p.ropes...)
	d.markAfter(p.ropes, phaseLinears)
	d.showProjected(layer)
	// In a layer with decodes only, attention waits for every launch before it, so blocks are closed
	// after it. Other attention takes longer and overlaps with the saves of a prompt's blocks.
	late := len(w.Prefill) == 0 && len(w.Rounds) == 0
	if !late {
		d.closeBlocks(layer)
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
		d.closeBlocks(layer)
	}
}

// planLayer writes the arrays for all launches of the layer's attention.
func (d *paged) planLayer(layer int, w *sim.Work) {
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

// plan holds the launches of one layer's attention, for when its arrays are on the GPU.
type plan struct {
	opens   []cuda.Operation // open blocks of finished layer-segmented prefills, into their slots
	writes  []cuda.Operation // K and V of decodes
	ropes   []cuda.Operation // of prefills
	stashes []cuda.Operation // open blocks of running prefills, into their stash
	hits    []cuda.Operation // digests of prefixes that chunked prefills begin with

	closed []closed
	saves  []part // of closed, in order
	passes []pass // of prefills
	decode *cuda.DecodeArgs
}

func (p *plan) clear() {
	p.opens, p.writes, p.ropes = p.opens[:0], p.writes[:0], p.ropes[:0]
	p.stashes, p.hits, p.passes = p.stashes[:0], p.hits[:0], p.passes[:0]
	p.closed, p.saves = p.closed[:0], p.saves[:0]
}

// layerPool returns the start of the layer's slots: without offloading each layer has its own part.
func (d *paged) layerPool(layer int) cuda.Ptr {
	if d.offload {
		return d.pool
	}
	return d.pool + cuda.Ptr(int64(layer)*int64(d.hbmPages()*d.geo.KVHeads)*d.geo.BlockBytes)
}

func (d *paged) scale() float32 { return float32(1 / math.Sqrt(float64(d.model.HeadDim))) }

// decodeArgs returns the arguments of the layer's decodes that do not depend on a list or
// selection: for the write of their newest tokens, and for their attention.
func (d *paged) decodeArgs(layer int) (*cuda.KVWriteArgs, *cuda.DecodeArgs) {
	c, md, b := &d.decodes, d.model, &d.scratch
	write := (*cuda.KVWriteArgs)(d.decodeWrite(layer))
	a := &cuda.DecodeArgs{
		Q: b.q.At, Pool: write.Pool, Context: c.context, Out: b.attn.At,
		Batch: int32(c.n), HeadsQ: int32(md.QHeads), HeadsKV: int32(md.KVHeads),
		HeadDim: int32(md.HeadDim), BlockTokens: int32(d.geo.BlockTokens),
		MaxBlocks: int32(c.most), Scale: d.scale(),
	}
	return write, a
}

// planDecodes prepares the decodes' part of a layer.
func (d *paged) planDecodes(layer int, w *sim.Work) {
	c, p, b := &d.decodes, &d.plan, &d.scratch
	write, a := d.decodeArgs(layer)
	p.decode = a
	if !d.offload {
		a.Table, a.TableStride, a.Pages = c.table, int32(c.most), 1
	}
	switch {
	case w.Lists != nil:
		d.planLists(layer, w.Lists, write)
	case w.Sparse && d.cfg.Selects: // Score's choice has not left the GPU
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
		d.planRounds(w.Lists)
		return
	}
	a.Workspace = d.workspaceFor(a, &d.workspace, "decode workspace")
}

// planFilled adds the blocks that the decodes' tokens fill.
func (d *paged) planFilled(pool cuda.Ptr) {
	heads := d.geo.KVHeads
	for i := range d.decodes.n {
		row := &d.rows[i]
		if row.To%d.geo.BlockTokens != 0 {
			continue
		}
		block := row.To/d.geo.BlockTokens - 1
		k := closed{req: d.of[i], pool: pool, from: block, to: block + 1, page: !d.offload}
		if d.offload {
			k.slots, k.first, k.stride = d.openSlots[i*heads:][:heads], block, 1
		}
		d.plan.closed = append(d.plan.closed, k)
	}
}

// workspaceFor returns the scratch memory of an operation, in a buffer that grows.
func (d *paged) workspaceFor(op cuda.Operation, b *mem.Buffer, what string) cuda.Ptr {
	bytes, err := d.m.Workspace(op)
	d.queue.Fail(err)
	d.growZeroed(b, bytes, what)
	return b.At
}

// planLists uploads the blocks of each unit and, with offloading, their slots.
func (d *paged) planLists(layer int, l *sim.Lists, write *cuda.KVWriteArgs) {
	c, heads := &d.decodes, d.geo.KVHeads
	a, k := d.plan.decode, d.lookup.args
	a.MaxBlocks = 0
	for _, n := range l.Count {
		d.counters.Selected += int64(n)
		a.MaxBlocks = max(a.MaxBlocks, n)
	}
	a.ListStride = int32(l.Stride)
	a.Count, a.List, a.Slot = d.listed(l.Count), d.listed(l.Block), d.listed(l.Slot)
	if !d.offload {
		return
	}
	write.Table, write.First = d.listed(l.Open), d.decodes.open
	write.RowStride, write.HeadStride = int64(heads), 1
	if k.Named, k.First = a.Count, d.listed(l.FirstRound); l.ListedAhead != nil {
		k.Named = d.listed(l.ListedAhead)
	}
	d.openSlots = l.Open
	for i := range c.n {
		if d.stashedOpen(i) {
			d.planOpen(layer, d.of[i], l.Open[i*heads:][:heads])
		}
	}
}

// stashedOpen reports whether the open block of a decode must first be copied from its prefill's
// stash.
func (d *paged) stashedOpen(i int) bool {
	return d.of[i].stashed && d.rows[i].From%d.geo.BlockTokens != 0
}

// listed uploads the server's words and returns their GPU address.
func (d *Device) listed(words []int32) cuda.Ptr {
	own, at := d.stage.Words(len(words))
	copy(own, words)
	return at
}
