package live

import (
	"fmt"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live/mem"
	"github.com/sparseserve/sparseserve/sim"
)

// paged is grouped-query attention over blocks of tokens, dense or sparse. It implements attention.
type paged struct {
	*Device
	budget int      // blocks that a decode selects
	pool   cuda.Ptr // slots; without offloading [layer][page][KV head]

	decodes decodes
	plan    plan
	hits    hits

	pageTables []pageTable // of the step's prefills, without offloading

	patterns  patterns // of sparse prefill
	openSlots []int32  // of the layer: slot of each decode and KV head's open block
	loading   loading  // of the layer

	progressive progressive
	lookup      lookup
	prefetch    prefetch
	// 0, 1, 2, .. on both sides: rows of decodes, and slots of layer-segmented prefills.
	order     []int32
	orderAt   cuda.Ptr
	workspace mem.Buffer      // of decode attention
	selected  cuda.HostMemory // int32 [decodes][KVHeads][budget] of a layer, on the host
}

// open implements attention.
func (d *paged) open() (err error) {
	s := d.cfg.Spec
	d.patterns = newPatterns(d.cfg.Patterns)
	d.lookup.args = &cuda.LookupArgs{}
	if d.sparse {
		d.budget = sim.SelectedBlocks(s)
		if d.selected, err = d.m.HostAlloc(4*int64(s.MaxRequests*d.geo.KVHeads*d.budget),
			cuda.DriverPages); err != nil {
			return err
		}
	}
	if s.Progressive() {
		if err = d.progressive.open(d.m, s); err != nil {
			return err
		}
		d.streams = append(d.streams, d.progressive.stream)
	}
	if s.Offload.On && s.CachesPrefixes() {
		if err = d.prefetch.open(d.m); err != nil {
			return err
		}
		d.streams = append(d.streams, d.prefetch.stream)
	}
	if s.GPULookup() {
		if err = d.lookup.open(d.m, d.geo.Layers); err != nil {
			return err
		}
	}
	blocks := d.cfg.KVBytes / d.geo.BlockBytes
	if !d.offload {
		n := d.hbmPages()
		d.pages, blocks = mem.NewHBMPages(n), int64(n*d.geo.Groups())
	}
	if d.pool, err = d.m.DeviceAlloc(blocks * d.geo.BlockBytes); err != nil {
		return fmt.Errorf("KV cache of %s and %s of weights; lower system.kv_gib: %w",
			mem.GiB(blocks*d.geo.BlockBytes), mem.GiB(d.model.WeightBytes()), err)
	}
	if d.offload {
		if d.saver, err = newSaver(d.queue, s.Offload.Save, int64(s.Offload.SaveBufferMiB*(1<<20)),
			d.geo.BlockBytes, d.cfg.SaveThreads); err != nil {
			return err
		}
	}
	if s, prefix := d.cfg.longestIndex(); s.queries > 0 {
		d.sizeIndex(s, prefix)
	}
	if !d.cfg.FindsLines {
		return d.patterns.draw(d.m, d.cfg.lineTokens())
	}
	return nil
}

// hbmPages returns the number of whole-model blocks that the server has without offloading.
func (d *paged) hbmPages() int {
	block := d.geo.BlockBytes * int64(d.geo.Groups())
	if d.sparse {
		block += d.geo.MetaBytes * int64(d.geo.Groups())
	}
	return int(d.cfg.KVBytes / block)
}

// hold implements attention.
func (d *paged) hold(r *request, row *sim.Row) {
	if row.Seq >= 0 {
		d.bySeq[row.Seq] = r
		r.forget(d.saver.finished())
	}
	d.addPages(r, row)
	if d.sparse && r.meta.Bytes == 0 {
		r.metaBlocks = d.geo.Blocks(row.MaxTokens)
		bytes := int64(d.geo.Groups()*r.metaBlocks) * d.geo.MetaBytes
		r.meta = d.alloc(bytes, "block metadata")
	}
	if d.lookup.on && r.table.Bytes == 0 {
		d.openTable(r, row.MaxTokens)
	}
	if row.Segmented && r.layer.Bytes == 0 {
		d.openSegments(r)
	}
}

// size implements attention.
func (d *paged) size(s *sim.Step) {
	for i := range s.Rows {
		if row := &s.Rows[i]; !row.Decode {
			d.sizeIndex(indexShape{row.To - row.From, row.To}, row.From > 0)
		}
	}
}

// begin implements attention.
func (d *paged) begin(s *sim.Step) {
	d.pageTables = d.pageTables[:0]
	d.loading.count, d.progressive.on, d.hits.layer = 0, false, -1
	n := len(s.Rows)
	for i := range s.Rows {
		if s.Rows[i].Segmented {
			n = max(n, d.geo.KVHeads*d.geo.Blocks(len(d.of[i].tokens)))
		}
	}
	d.order, d.orderAt = d.stage.Words(n)
	for i := range d.order {
		d.order[i] = int32(i)
	}
	d.beginDecodes(s)
}

// end implements attention.
func (d *paged) end() { d.awaitLate() }

// ended implements attention: it frees the buffers of finished prefills and begun decodes.
func (d *paged) ended() error {
	for i, r := range d.of {
		if row := &d.rows[i]; row.Segmented && row.Emits {
			d.closeSegments(r)
			r.stashed = row.To%d.geo.BlockTokens != 0
		}
		if d.rows[i].Decode && r.stashed {
			d.free(&r.stash)
			r.stashed = false
		}
	}
	return d.checkLookups()
}
