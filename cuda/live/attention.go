package live

import (
	"fmt"
	"math"

	"sparseserve/cuda"
	"sparseserve/sim"
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
func (d *Device) beginDecodes(s *sim.Step) error {
	c := &d.decodes
	*c = decodes{}
	for i := range s.Rows {
		if s.Rows[i].Decode {
			c.n++
			c.most = max(c.most, d.geo.Blocks(s.Rows[i].To))
		}
	}
	if c.n == 0 {
		return nil
	}
	words, at, err := d.stage.words(2 * c.n)
	if err != nil {
		return err
	}
	c.context, c.open = at, at+cuda.Ptr(4*c.n)
	for i := range c.n {
		words[i], words[c.n+i] = int32(s.Rows[i].To), int32((s.Rows[i].To-1)/d.geo.BlockTokens)
	}
	if !d.offload {
		table, at, err := d.stage.words(c.n * c.most)
		if err != nil {
			return err
		}
		c.table = at
		for i := range c.n {
			copy(table[i*c.most:], d.of[i].pages)
		}
	}
	if d.lookup.on {
		if err := d.beginLookup(); err != nil {
			return err
		}
	}
	if d.sparse {
		return d.beginSelection(s)
	}
	return nil
}

// attend writes K and V of the layer's tokens to their blocks, where ready has not, sees to the blocks that became full, and runs attention of all
// rows. Q and K of prefills are turned here, where their blocks' slots are known: the kernel that turns them then writes them too.
func (d *Device) attend(layer int, w *sim.Work) error {
	p := &d.plan
	p.clear()
	if w.Decodes > 0 {
		if err := d.planDecodes(layer, w); err != nil {
			return err
		}
	}
	for i := range w.Prefill {
		if err := d.planPrefill(layer, w, i); err != nil {
			return err
		}
	}
	if err := d.planClosed(layer); err != nil {
		return err
	}
	if err := d.stage.send(d.stream); err != nil { // the layer's one upload
		return err
	}
	if err := d.awaitLate(); err != nil {
		return err
	}
	if d.lookup.on {
		if err := d.lookUp(layer); err != nil {
			return err
		}
	}
	// The layer's round trip ends where all that its launches need is on the GPU again: until then this had nothing to do but wait and fetch it.
	if d.offload && w.Sparse && w.Decodes > 0 && !d.lookup.on {
		if err := d.clock.mark(phaseHost); err != nil {
			return err
		}
	}
	if err := d.startLoads(); err != nil {
		return err
	}
	for i := range p.opens {
		if err := d.m.GPUScatter(&p.opens[i], d.stream); err != nil {
			return fmt.Errorf("open blocks: %w", err)
		}
	}
	for i := range p.writes {
		if err := d.m.KVWrite(&p.writes[i], d.stream); err != nil {
			return err
		}
	}
	for i := range p.ropes {
		if err := d.m.Rope(&p.ropes[i], d.stream); err != nil {
			return err
		}
	}
	if len(p.ropes) > 0 {
		if err := d.clock.mark(phaseLinears); err != nil {
			return err
		}
	}
	if err := d.closeBlocks(layer); err != nil {
		return err
	}
	if len(w.Rounds) > 0 { // first, as its loads bring back prefixes of prefills that had been set back
		if err := d.attendRounds(layer); err != nil {
			return err
		}
	}
	for i := range p.prefills {
		if err := d.m.Prefill(&p.prefills[i], d.stream); err != nil {
			return err
		}
	}
	if len(p.prefills) > 0 {
		if err := d.clock.mark(phasePrefill); err != nil {
			return err
		}
	}
	if w.Decodes == 0 || len(w.Rounds) > 0 {
		return nil
	}
	if err := d.m.Decode(&p.decode, d.stream); err != nil {
		return err
	}
	if w.Sparse {
		return d.clock.mark(phaseSparse)
	}
	return d.clock.mark(phaseDense)
}

// plan is what one layer's attention launches once its arrays are on the GPU.
type plan struct {
	opens    []cuda.BlocksArgs // open blocks of finished layer-segmented prefills, into their slots
	writes   []cuda.RopeArgs   // of decodes
	ropes    []cuda.RopeArgs   // of prefills
	stashes  []cuda.BlocksArgs // open blocks of running ones, into their stash
	closed   []closed
	saves    []part // of closed, in order
	prefills []cuda.PrefillArgs
	decode   cuda.DecodeArgs
}

func (p *plan) clear() {
	p.opens, p.writes, p.ropes, p.stashes = p.opens[:0], p.writes[:0], p.ropes[:0], p.stashes[:0]
	p.closed, p.saves, p.prefills = p.closed[:0], p.saves[:0], p.prefills[:0]
}

// layerPool is where the layer's slots begin: without offloading each layer has its own part.
func (d *Device) layerPool(layer int) cuda.Ptr {
	if d.offload {
		return d.pool
	}
	return d.pool + cuda.Ptr(int64(layer)*int64(d.hbmPages()*d.geo.KVHeads)*d.geo.BlockBytes)
}

func (d *Device) scale() float32 { return float32(1 / math.Sqrt(float64(d.model.HeadDim))) }

// planDecodes prepares the decodes' part of a layer.
func (d *Device) planDecodes(layer int, w *sim.Work) error {
	c, p, md, b := &d.decodes, &d.plan, d.model, &d.scratch
	write := d.decodeWrite(layer)
	p.decode = cuda.DecodeArgs{
		Q: b.q.at, Pool: write.Pool, Context: c.context, Out: b.attn.at, Batch: int32(c.n), HeadsQ: int32(md.HeadsQ), HeadsKV: int32(md.HeadsKV),
		HeadDim: int32(md.HeadDim), BlockTokens: int32(d.geo.BlockTokens), MaxBlocks: int32(c.most), Scale: d.scale(),
	}
	if !d.offload {
		p.decode.Table, p.decode.TableStride, p.decode.Pages = c.table, int32(c.most), 1
	}
	switch {
	case w.Lists != nil:
		if err := d.planLists(layer, w.Lists, &write); err != nil {
			return err
		}
	case w.Sparse && d.cfg.Selects: // what Score chose has not left the GPU
		a := &p.decode
		a.Count, a.List, a.ListStride, a.MaxBlocks = b.count.at, b.list.at, int32(d.budget), int32(min(d.budget, c.most))
	}
	if d.offload { // else ready has written
		p.writes = append(p.writes, write)
	}
	for i := range c.n {
		if row := &d.rows[i]; row.To%d.geo.BlockTokens == 0 {
			block := row.To/d.geo.BlockTokens - 1
			k := closed{req: d.of[i], pool: write.Pool, from: block, to: block + 1}
			if d.offload {
				k.slots, k.first, k.stride = d.open[i*md.HeadsKV:][:md.HeadsKV], block, 1
			} else {
				k.page = true
			}
			p.closed = append(p.closed, k)
		}
	}
	if len(w.Rounds) > 0 {
		if err := d.countRounds(w.Lists); err != nil {
			return err
		}
	}
	if d.lookup.on {
		if err := d.planLookup(layer); err != nil {
			return err
		}
	}
	if len(w.Rounds) > 0 {
		return d.planRounds(layer, w.Lists)
	}
	bytes, err := d.m.DecodeWorkspace(&p.decode)
	if err != nil {
		return err
	}
	if err := d.growZeroed(&d.workspace, bytes, "decode workspace"); err != nil {
		return err
	}
	p.decode.Workspace = d.workspace.at
	return nil
}

// planLists says which blocks each unit attends to and, with offloading, their slots. They are uploaded from where the server wrote them, and
// not again where nothing has changed.
func (d *Device) planLists(layer int, l *sim.Lists, write *cuda.RopeArgs) error {
	c, heads := &d.decodes, d.geo.KVHeads
	units := c.n * heads
	most := int32(0)
	for _, n := range l.Count[:units] {
		d.counters.Selected += int64(n)
		most = max(most, n)
	}
	a := &d.plan.decode
	a.ListStride, a.MaxBlocks = int32(l.Stride), most
	k := &d.lookup.args
	for _, p := range []struct {
		words []int32
		at    *cuda.Ptr
	}{{l.Count[:units], &a.Count}, {l.Block[:units*l.Stride], &a.List}, {l.Slot, &a.Slot}, {l.Open, &write.Table}, {l.Named, &k.Named}, {l.First, &k.First}} {
		if len(p.words) == 0 {
			continue
		}
		var lent bool
		if *p.at, lent = d.stage.lent(p.words); lent {
			continue
		}
		own, at, err := d.stage.words(len(p.words))
		if err != nil {
			return err
		}
		copy(own, p.words)
		*p.at = at
	}
	if !d.offload {
		return nil
	}
	if l.Named == nil {
		k.Named = a.Count
	}
	d.open = l.Open
	write.First, write.RowStride, write.HeadStride = c.open, int64(heads), 1
	for i := range c.n {
		if r := d.of[i]; r.stashed && d.rows[i].From%d.geo.BlockTokens != 0 {
			if err := d.planOpen(layer, r, l.Open[i*heads:][:heads]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Room implements sim.Lender.
func (d *Device) Room(layer, words int) []int32 { return d.stage.lend(layer, words) }

// planOpen brings a prefill's open blocks of one layer to the slots that they have got.
func (d *Device) planOpen(layer int, r *request, slots []int32) error {
	heads := d.geo.KVHeads
	addresses, at, err := d.stage.longs(2 * heads)
	if err != nil {
		return err
	}
	for h := range heads {
		addresses[h] = int64(r.stash.at) + int64(layer*heads+h)*d.geo.BlockBytes
		addresses[heads+h] = int64(d.pool) + int64(slots[h])*d.geo.BlockBytes
	}
	d.plan.opens = append(d.plan.opens, cuda.BlocksArgs{Src: at, Dst: at + cuda.Ptr(8*heads), Count: int64(heads), BlockBytes: d.geo.BlockBytes, CTAs: int32(heads)})
	return nil
}

// planPrefill prepares one prefill's part of a layer.
func (d *Device) planPrefill(layer int, w *sim.Work, i int) error {
	t := &w.Tables[i]
	row, r := &d.rows[t.Row], d.of[t.Row]
	at := d.placeOf(row)
	p, md, heads := &d.plan, d.model, d.geo.KVHeads
	blocks := d.geo.Blocks(row.To)
	write := d.rope(at, at+row.To-row.From)
	write.HeadStride = int64(blocks)
	full := closed{req: r, from: row.From / d.geo.BlockTokens, to: row.To / d.geo.BlockTokens}
	switch {
	case row.Segmented: // one layer's blocks, in order
		write.HeadStride = int64(d.geo.Blocks(len(r.tokens)))
		write.Pool, write.Table = r.layer.at, d.scratch.ordered.at
		full.slots, full.stride = d.order, int(write.HeadStride)
	case d.offload:
		if t.Blocks != blocks {
			return fmt.Errorf("request %d: a table of %d blocks for %d tokens", row.ID, t.Blocks, row.To)
		}
		slots, table, err := d.stage.words(len(t.Slot))
		if err != nil {
			return err
		}
		copy(slots, t.Slot)
		write.Pool, write.Table = d.pool, table
		full.slots, full.stride = slots, blocks
	default:
		slots, table, err := d.stage.words(heads * blocks)
		if err != nil {
			return err
		}
		for h := range heads {
			for b := range blocks {
				slots[h*blocks+b] = r.pages[b]*int32(heads) + int32(h)
			}
		}
		write.Pool, write.Table = d.layerPool(layer), table
		full.slots, full.stride = slots, blocks
	}
	p.ropes = append(p.ropes, write)
	full.pool = write.Pool
	if full.to > full.from {
		p.closed = append(p.closed, full)
	}
	if row.Segmented && row.To == len(r.tokens) && row.To%d.geo.BlockTokens != 0 {
		if err := d.planStash(layer, r, int(write.HeadStride)); err != nil {
			return err
		}
	}
	width, token := int64(md.HeadDim), int64(md.heads()*md.HeadDim)
	a := cuda.PrefillArgs{
		Q: d.qkv(at, 0), K: d.qkv(at, md.HeadsQ), V: d.qkv(at, md.HeadsQ+md.HeadsKV), Out: d.scratch.attn.at + cuda.Ptr(at*md.HeadsQ*md.HeadDim*2),
		QTokenStride: token, QHeadStride: width, KTokenStride: token, KHeadStride: width, VTokenStride: token, VHeadStride: width,
		OutTokenStride: int64(md.HeadsQ * md.HeadDim), OutHeadStride: width,
		QTokens: int32(row.To - row.From), Prefix: int32(row.From), HeadsQ: int32(md.HeadsQ), HeadsKV: int32(md.HeadsKV), HeadDim: int32(md.HeadDim), Scale: d.scale(),
	}
	if row.From > 0 { // the prefix lies in blocks
		a.Pool, a.Table, a.TableStride, a.BlockTokens = write.Pool, write.Table, int32(write.HeadStride), int32(d.geo.BlockTokens)
	}
	p.prefills = append(p.prefills, a)
	return nil
}

// planStash keeps the open block of every KV head of one layer until the request decodes; it is copied once the layer is written.
func (d *Device) planStash(layer int, r *request, stride int) error {
	heads := d.geo.KVHeads
	addresses, at, err := d.stage.longs(2 * heads)
	if err != nil {
		return err
	}
	last := len(r.tokens) / d.geo.BlockTokens
	for h := range heads {
		addresses[h] = int64(r.layer.at) + int64(h*stride+last)*d.geo.BlockBytes
		addresses[heads+h] = int64(r.stash.at) + int64(layer*heads+h)*d.geo.BlockBytes
	}
	d.plan.stashes = append(d.plan.stashes, cuda.BlocksArgs{Src: at, Dst: at + cuda.Ptr(8*heads), Count: int64(heads), BlockBytes: d.geo.BlockBytes, CTAs: int32(heads)})
	return nil
}

func (d *Device) placeOf(row *sim.Row) int {
	for _, p := range d.active.rows {
		if p.row == row {
			return p.at
		}
	}
	panic(fmt.Sprintf("live: row of request %d is not in the layer", row.ID))
}
