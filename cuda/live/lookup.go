package live

import (
	"fmt"
	"slices"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live/mem"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// lookup finds on the GPU which of a layer's listed blocks are in HBM (cuda/lookup.cu), in a table
// of slots for every request. The host's cache runs ahead, because the server knows its selections
// before the GPU does. It supplies the victims of eviction and the free slots, and checks that each
// layer has the same number of misses on the GPU. Nothing waits for the host between two layers,
// unless a missing block is still being saved.
//
// A table changes in stream order: before a lookup by the host's other changes (blocks that the
// model begins to write, restored prefixes of prefills, evictions between steps), then by the
// lookup.
type lookup struct {
	on    bool
	args  *cuda.LookupArgs
	table *cuda.TableArgs    // before it
	back  *cuda.FlashH2DArgs // prefixes of prefills to restore
	// Misses of each layer in this step; -1: the layer was not looked up.
	want   []int64
	misses cuda.HostMemory // int64 [layers] by the GPU's count

	// slot: int32 [decodes][KVHeads][stride]; src and dst: addresses of a layer's loads
	slot, src, dst, loads, state mem.Buffer
	// Of the step: uint64 [decodes] tables, int32 [decodes] blocks per group in each table, uint64
	// [decodes][most] pages.
	tables, caps, pages cuda.Ptr
}

func (k *lookup) open(m cuda.Machine, layers int) (err error) {
	k.on, k.want = true, make([]int64, layers)
	k.none()
	k.misses, err = m.HostAlloc(8*int64(layers), cuda.DriverPages)
	return err
}

// none marks all layers as not looked up.
func (k *lookup) none() {
	for i := range k.want {
		k.want[i] = -1
	}
}

// openTable allocates a request's table: no block is in HBM.
func (d *paged) openTable(r *request, maxTokens int) {
	r.tableBlocks = d.geo.Blocks(maxTokens)
	r.table = d.alloc(int64(d.geo.Groups()*r.tableBlocks)*4, "table of slots")
	d.launch(&cuda.MemsetArgs{Dst: r.table.At, Bytes: int64(d.geo.Groups()*r.tableBlocks) * 4})
}

// beginLookup uploads the addresses of the decodes' tables and pages.
func (d *paged) beginLookup() {
	c, k := &d.decodes, &d.lookup
	k.none()
	longs, at := d.stage.Longs(c.n + c.n*c.most)
	k.tables, k.pages = at, at+cuda.Ptr(8*c.n)
	caps, at := d.stage.Words(c.n)
	k.caps = at
	// Blocks without a page are in HBM. A wrong lookup must still find a valid address for them,
	// because its gather runs before the check.
	some := longs[c.n:]
	if i := slices.IndexFunc(d.of[:c.n],
		func(r *request) bool { return len(r.pages) > 0 }); i >= 0 {
		some[0] = int64(d.dram.Block(d.of[i].pages[0], 0))
	} else {
		some[0] = 0 // nothing can be loaded
	}
	for i := range some {
		some[i] = some[0]
	}
	for i, r := range d.of[:c.n] {
		longs[i], caps[i] = int64(r.table.At), int32(r.tableBlocks)
		r.decodes = d.step.Index + 1
		for b, page := range r.pages {
			longs[c.n+i*c.most+b] = int64(d.dram.Block(page, 0))
		}
	}
	d.growZeroed(&k.loads, 8, "loads counted")
}

// entry returns the address of a block's entry in its request's table.
func (d *paged) entry(ref *kv.BlockRef) int64 {
	r := d.bySeq[ref.Seq]
	if r == nil || int(ref.Block) >= r.tableBlocks {
		d.queue.Fail(fmt.Errorf("block %d of handle %d has no place in a table", ref.Block,
			ref.Seq))
		return 0
	}
	return int64(r.table.At) + 4*(int64(ref.Group)*int64(r.tableBlocks)+int64(ref.Block))
}

// nameChanges prepares the changes to tables that this layer's lookup or a later one depends on,
// and the slots for its misses.
func (d *paged) nameChanges(m *kv.Moves) {
	k := &d.lookup
	k.args, k.table, k.back = &cuda.LookupArgs{}, &cuda.TableArgs{}, &cuda.FlashH2DArgs{}
	free, freeAt := d.stage.Words(len(m.Missed))
	misses := 0
	var back []*kv.BlockRef // of prefills
	for i := range m.Missed {
		ref := &m.Missed[i]
		r := d.savedIn(ref)
		if r == nil {
			return
		}
		if r.decodes != d.step.Index+1 {
			back = append(back, ref)
			continue
		}
		free[misses] = int32(ref.Slot)
		misses++
	}
	k.args.FreeSlot, k.args.Frees = freeAt, int32(misses)
	d.loading.count = misses
	d.nameBack(m, back)
	before, after := m.Evicted[:m.EvictedBefore], m.Evicted[m.EvictedBefore:]
	k.args.Evicted, k.args.Evictions = d.entries(after), int32(len(after))
	k.table.Evicted, k.table.Evictions = d.entries(before), int32(len(before))
}

// savedIn returns the request whose DRAM pages hold a block, after the block is saved.
func (d *paged) savedIn(ref *kv.BlockRef) *request {
	r := d.bySeq[ref.Seq]
	if r == nil || int(ref.Block) >= len(r.pages) {
		d.queue.Fail(fmt.Errorf("block %d of handle %d was never saved", ref.Block, ref.Seq))
		return nil
	}
	if len(r.saves) > 0 { // it may still be in flight
		if err := r.waitFor(d.saver, int(ref.Block)); err != nil {
			d.queue.Fail(err)
			return nil
		}
	}
	return r
}

// nameBack prepares the blocks that get a slot in addition to decodes' misses: blocks that the
// model begins to write, and the prefixes of preempted prefills, which are also loaded.
func (d *paged) nameBack(m *kv.Moves, back []*kv.BlockRef) {
	k, n := &d.lookup, len(m.Seated)+len(back)
	if n == 0 {
		return
	}
	entries, entryAt := d.stage.Longs(n)
	slots, slotAt := d.stage.Words(n)
	k.table.Entry, k.table.Slot, k.table.Entries = entryAt, slotAt, int32(n)
	for i := range m.Seated {
		entries[i], slots[i] = d.entry(&m.Seated[i]), int32(m.Seated[i].Slot)
	}
	addresses, at := d.stage.Longs(2 * len(back))
	*k.back = cuda.FlashH2DArgs{
		Src: at, Dst: at + cuda.Ptr(8*len(back)), Count: int64(len(back)),
		BlockBytes: d.geo.BlockBytes,
	}
	for i, ref := range back {
		entries[len(m.Seated)+i], slots[len(m.Seated)+i] = d.entry(ref), int32(ref.Slot)
		page := d.bySeq[ref.Seq].pages[ref.Block]
		addresses[i] = int64(d.dram.Block(page, int(ref.Group)))
		addresses[len(back)+i] = int64(d.pool) + int64(ref.Slot)*d.geo.BlockBytes
	}
}

// entries uploads the addresses of blocks' entries.
func (d *paged) entries(refs []kv.BlockRef) cuda.Ptr {
	entries, at := d.stage.Longs(len(refs))
	for i := range refs {
		entries[i] = d.entry(&refs[i])
	}
	return at
}

// planLookup prepares the lookup of the layer's lists, from the results of planLists and
// countRounds.
func (d *paged) planLookup(layer int) {
	k, c, a, md := &d.lookup, &d.decodes, d.plan.decode, d.model
	entries := int64(c.n*md.KVHeads) * int64(a.ListStride)
	d.grow(&k.slot, 4*entries, "slots of listed blocks")
	d.grow(&k.src, 8*entries, "loads")
	d.grow(&k.dst, 8*entries, "loads")
	l := k.args
	l.Table, l.Cap, l.Page, l.List, l.Slot = k.tables, k.caps, k.pages, a.List, k.slot.At
	l.Src, l.Dst, l.Loads = k.src.At, k.dst.At, k.loads.At
	l.Misses = k.misses.Ptr() + cuda.Ptr(8*layer)
	l.Pool, l.BlockBytes = d.pool, d.geo.BlockBytes
	l.Batch, l.Heads, l.Group = int32(c.n), int32(md.KVHeads), int32(layer*md.KVHeads)
	l.Stride, l.PageStride = a.ListStride, int32(c.most)
	a.Slot = k.slot.At
	k.want[layer] = int64(l.Frees)
	d.loading.args = cuda.BlocksArgs{
		Src: k.src.At, Dst: k.dst.At, Count: entries, BlockBytes: d.geo.BlockBytes,
		Counted: k.loads.At,
	}
	if p := &d.progressive; p.on {
		before, at := d.stage.Longs(len(p.before))
		copy(before, p.before)
		l.Before, l.Rounds, l.Micro = at, int32(len(p.before)-1), int32(p.micro)
		d.loading.args.Counted = 0 // the host launches each round's loads, by its own count
	}
	l.State = d.workspaceFor(l, &k.state, "lookup")
}

// lookUp changes the tables, looks up the layer's slots and restores prefixes.
func (d *paged) lookUp(layer int) {
	k := &d.lookup
	if !k.on {
		return
	}
	if k.table.Evictions > 0 || k.table.Entries > 0 {
		d.launch(k.table)
	}
	if k.args.Batch > 0 {
		d.launch(k.args)
		d.clock.mark(phaseHost)
	} else if k.args.Evictions > 0 {
		d.launch(&cuda.TableArgs{Evicted: k.args.Evicted, Evictions: k.args.Evictions})
	}
	if k.back.Count > 0 {
		d.counters.Loaded += k.back.Count
		d.launch(k.back)
		d.clock.mark(phaseLoadStall)
	}
}

// checkLookups compares the GPU's misses of the step with the cache's; the stream is idle.
func (d *paged) checkLookups() error {
	if !d.lookup.on {
		return nil
	}
	misses := cuda.Slice[int64](d.lookup.misses)
	for layer, want := range d.lookup.want {
		if want >= 0 && misses[layer] != want {
			return fmt.Errorf("layer %d: the GPU's lookup misses %d blocks, the cache %d; one of "+
				"them is wrong, please report it", layer, misses[layer], want)
		}
	}
	d.lookup.none()
	return nil
}
