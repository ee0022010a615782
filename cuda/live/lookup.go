package live

import (
	"fmt"
	"slices"

	"sparseserve/cuda"
	"sparseserve/sim/kv"
)

// lookup has the GPU find out which of a layer's listed blocks are in HBM (cuda/lookup.cu): every request has a table of slots there. The host's
// cache goes ahead of it, since the selections that the server imposes are known before the GPU gets there. It hands over what only it can know,
// which blocks are the oldest and so give up their slots, and is the reference of the rest: the GPU's misses must be as many as its own, layer by
// layer, and every slot is the one that it gave. Nothing waits for the host between two layers, but where a block that is missing is still on its way to DRAM.
//
// A table changes in the order of the stream: before a layer is looked up by what the host did beside decodes' misses (blocks that the model
// begins to write, prefixes of prefills brought back, evictions between steps), and by the lookup itself.
type lookup struct {
	on    bool
	args  cuda.LookupArgs
	table cuda.TableArgs  // before it
	back  cuda.BlocksArgs // prefixes of prefills to bring back
	want  []int64         // misses of each layer that was looked up in this step; -1: it was not
	told  cuda.HostMemory // int64 [layers] by the GPU's count

	slot, src, dst, loads, state buffer // slot: int32 [decodes][KVHeads][stride]; src and dst: addresses of a layer's loads
	// Of the step: uint64 [decodes] tables, int32 [decodes] blocks they have room for in each group, uint64 [decodes][most] pages.
	tables, caps, pages cuda.Ptr
}

func (k *lookup) open(m Machine, layers int) (err error) {
	k.on, k.want = true, make([]int64, layers)
	k.none()
	k.told, err = m.HostAlloc(8*int64(layers), cuda.DriverPages)
	return err
}

// none says that no layer has been looked up yet.
func (k *lookup) none() {
	for i := range k.want {
		k.want[i] = -1
	}
}

func (k *lookup) close(m Machine) error {
	for _, b := range []*buffer{&k.slot, &k.src, &k.dst, &k.loads, &k.state} {
		if b.bytes > 0 {
			if err := m.DeviceFree(b.at); err != nil {
				return err
			}
			b.bytes = 0
		}
	}
	if k.told == (cuda.HostMemory{}) {
		return nil
	}
	return m.HostFree(k.told)
}

// openTable gives a request its table: no block is in HBM.
func (d *Device) openTable(r *request, maxTokens int) (err error) {
	r.tableBlocks = d.geo.Blocks(maxTokens)
	bytes := int64(d.geo.Groups()*r.tableBlocks) * 4
	if r.table, err = d.arena.take(bytes, "table of slots"); err != nil {
		return err
	}
	return d.m.Memset(&cuda.MemsetArgs{Dst: r.table.at, Bytes: bytes}, d.stream)
}

// beginLookup says where the decodes' tables and pages are.
func (d *Device) beginLookup() error {
	c, k := &d.decodes, &d.lookup
	k.none()
	longs, at, err := d.stage.longs(c.n + c.n*c.most)
	if err != nil {
		return err
	}
	k.tables, k.pages = at, at+cuda.Ptr(8*c.n)
	caps, at, err := d.stage.words(c.n)
	if err != nil {
		return err
	}
	k.caps = at
	// Blocks without a page are in HBM. A lookup that errs must find an address for them all the same: its gather runs before the check.
	some := longs[c.n:]
	if i := slices.IndexFunc(d.of[:c.n], func(r *request) bool { return len(r.pages) > 0 }); i >= 0 {
		some[0] = int64(d.dram.block(d.of[i].pages[0], 0))
	} else {
		some[0] = 0 // nothing can be loaded
	}
	for i := range some {
		some[i] = some[0]
	}
	for i, r := range d.of[:c.n] {
		longs[i], caps[i] = int64(r.table.at), int32(r.tableBlocks)
		r.decodes = d.step.Index + 1
		for b, page := range r.pages {
			longs[c.n+i*c.most+b] = int64(d.dram.block(page, 0))
		}
	}
	return d.growZeroed(&k.loads, 8, "loads counted")
}

// entry is the address of a block's entry in its request's table.
func (d *Device) entry(ref *kv.BlockRef) (int64, error) {
	r := d.bySeq[ref.Seq]
	if r == nil || int(ref.Block) >= r.tableBlocks {
		return 0, fmt.Errorf("block %d of handle %d has no place in a table", ref.Block, ref.Seq)
	}
	return int64(r.table.at) + 4*(int64(ref.Group)*int64(r.tableBlocks)+int64(ref.Block)), nil
}

// nameChanges readies the changes to tables that this layer's lookup, or a later one, must find, and the slots that its misses get.
func (d *Device) nameChanges(m *kv.Moves) error {
	k := &d.lookup
	k.args, k.back = cuda.LookupArgs{}, cuda.BlocksArgs{}
	free, freeAt, err := d.stage.words(len(m.Missed))
	if err != nil {
		return err
	}
	misses, back := 0, 0
	for i := range m.Missed {
		ref := &m.Missed[i]
		r := d.bySeq[ref.Seq]
		if r == nil || int(ref.Block) >= len(r.pages) {
			return fmt.Errorf("block %d of handle %d was never saved", ref.Block, ref.Seq)
		}
		if len(r.saves) > 0 {
			if err := r.waitFor(d.saver, int(ref.Block)); err != nil {
				return err
			}
		}
		if r.decodes != d.step.Index+1 {
			back++
			continue
		}
		free[misses] = int32(ref.Slot)
		misses++
	}
	k.args.FreeSlot, k.args.Frees = freeAt, int32(misses)
	d.loading.count = misses
	if err := d.nameBack(m, back); err != nil {
		return err
	}
	if k.args.Evicted, err = d.entries(m.Evicted[m.EvictedBefore:]); err != nil {
		return err
	}
	k.args.Evictions = int32(len(m.Evicted) - m.EvictedBefore)
	if k.table.Evicted, err = d.entries(m.Evicted[:m.EvictedBefore]); err != nil {
		return err
	}
	k.table.Evictions = int32(m.EvictedBefore)
	return nil
}

// nameBack readies what gets a slot beside decodes' misses: blocks that the model begins to write, and the prefixes of prefills that were set back,
// which are also loaded.
func (d *Device) nameBack(m *kv.Moves, back int) error {
	k, n := &d.lookup, len(m.Seated)+back
	k.table = cuda.TableArgs{Entries: int32(n)}
	if n == 0 {
		return nil
	}
	entries, at, err := d.stage.longs(n)
	if err != nil {
		return err
	}
	slots, slotAt, err := d.stage.words(n)
	if err != nil {
		return err
	}
	k.table.Entry, k.table.Slot = at, slotAt
	addresses, at, err := d.stage.longs(2 * back)
	if err != nil {
		return err
	}
	k.back = cuda.BlocksArgs{Src: at, Dst: at + cuda.Ptr(8*back), Count: int64(back), BlockBytes: d.geo.BlockBytes}
	i := 0
	set := func(ref *kv.BlockRef) (err error) {
		entries[i], err = d.entry(ref)
		slots[i] = int32(ref.Slot)
		i++
		return err
	}
	for j := range m.Seated {
		if err := set(&m.Seated[j]); err != nil {
			return err
		}
	}
	loads := 0
	for j := range m.Missed {
		ref := &m.Missed[j]
		r := d.bySeq[ref.Seq]
		if r.decodes == d.step.Index+1 {
			continue
		}
		if err := set(ref); err != nil {
			return err
		}
		addresses[loads] = int64(d.dram.block(r.pages[ref.Block], int(ref.Group)))
		addresses[back+loads] = int64(d.pool) + int64(ref.Slot)*d.geo.BlockBytes
		loads++
	}
	return nil
}

// entries are the addresses of blocks' entries.
func (d *Device) entries(refs []kv.BlockRef) (cuda.Ptr, error) {
	if len(refs) == 0 {
		return 0, nil
	}
	entries, at, err := d.stage.longs(len(refs))
	for i := range refs {
		if err == nil {
			entries[i], err = d.entry(&refs[i])
		}
	}
	return at, err
}

// planLookup prepares the lookup of the layer's lists, from what planLists and countRounds have made of them.
func (d *Device) planLookup(layer int) error {
	k, c, a, md := &d.lookup, &d.decodes, &d.plan.decode, d.model
	entries := int64(c.n*md.HeadsKV) * int64(a.ListStride)
	for _, g := range []need{{&k.slot, 4 * entries, "slots of listed blocks"}, {&k.src, 8 * entries, "loads"}, {&k.dst, 8 * entries, "loads"}} {
		if err := d.grow(g.b, g.bytes, g.what); err != nil {
			return err
		}
	}
	l := &k.args
	l.Table, l.Cap, l.Page, l.List, l.Slot = k.tables, k.caps, k.pages, a.List, k.slot.at
	l.Src, l.Dst, l.Loads, l.Told = k.src.at, k.dst.at, k.loads.at, k.told.Ptr()+cuda.Ptr(8*layer)
	l.Pool, l.BlockBytes = d.pool, d.geo.BlockBytes
	l.Batch, l.Heads, l.Stride, l.PageStride, l.Group = int32(c.n), int32(md.HeadsKV), a.ListStride, int32(c.most), int32(layer*md.HeadsKV)
	a.Slot = k.slot.at
	k.want[layer] = int64(l.Frees)
	d.loading.args = cuda.BlocksArgs{Src: k.src.at, Dst: k.dst.at, Count: entries, BlockBytes: d.geo.BlockBytes, Counted: k.loads.at}
	if p := &d.progressive; p.on {
		before, at, err := d.stage.longs(len(p.before))
		if err != nil {
			return err
		}
		copy(before, p.before)
		l.Before, l.Rounds, l.Micro = at, int32(len(p.before)-1), int32(p.micro)
		d.loading.args.Counted = 0 // each round's loads are launched by the host, by its own count
	}
	bytes, err := d.m.LookupState(l)
	if err != nil {
		return err
	}
	if err := d.growZeroed(&k.state, bytes, "lookup"); err != nil {
		return err
	}
	l.State = k.state.at
	return nil
}

// lookUp changes the tables, finds the layer's slots and brings back prefixes.
func (d *Device) lookUp(layer int) error {
	k := &d.lookup
	if k.table.Evictions > 0 || k.table.Entries > 0 {
		if err := d.m.Table(&k.table, d.stream); err != nil {
			return err
		}
	}
	if k.args.Batch > 0 {
		if err := d.m.Lookup(&k.args, d.stream); err != nil {
			return err
		}
		if err := d.clock.mark(phaseHost); err != nil {
			return err
		}
	} else if k.args.Evictions > 0 {
		if err := d.m.Table(&cuda.TableArgs{Evicted: k.args.Evicted, Evictions: k.args.Evictions}, d.stream); err != nil {
			return err
		}
	}
	if k.back.Count == 0 {
		return nil
	}
	d.counters.Loaded += k.back.Count
	if err := d.m.FlashH2D(&k.back, d.stream); err != nil {
		return fmt.Errorf("loading %d blocks of prefixes: %w", k.back.Count, err)
	}
	return d.clock.mark(phaseLoadStall)
}

// checkLookups holds the GPU's misses of the step against the cache's; the stream is idle.
func (d *Device) checkLookups() error {
	if !d.lookup.on {
		return nil
	}
	told := cuda.Slice[int64](d.lookup.told)
	for layer, want := range d.lookup.want {
		if want >= 0 && told[layer] != want {
			return fmt.Errorf("layer %d: the GPU's lookup misses %d blocks, the cache %d; one of them is wrong, please report it", layer, told[layer], want)
		}
	}
	d.lookup.none()
	return nil
}
