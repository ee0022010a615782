package live

import (
	"fmt"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/sim"
)

// planPrefill prepares a row's prefill in a layer.
func (d *paged) planPrefill(layer, of int, t *sim.Table) {
	row, r := &d.rows[of], d.of[of]
	at := d.placeOf(row)
	write := d.rope(at, at+row.To-row.From)
	slots := d.planBlocks(layer, of, t, write)
	d.plan.ropes = append(d.plan.ropes, write)
	full := closed{
		req: r, pool: write.Pool, slots: slots, stride: int(write.HeadStride),
		from: row.From / d.geo.BlockTokens, to: row.To / d.geo.BlockTokens,
	}
	if full.to > full.from {
		d.plan.closed = append(d.plan.closed, full)
	}
	d.planHit(layer, row, r, full)
	if row.Segmented && row.To == len(r.tokens) && row.To%d.geo.BlockTokens != 0 {
		d.planStash(layer, r, int(write.HeadStride))
	}
	d.planAttention(layer, row, d.prefillArgs(row, at, write))
}

// planBlocks sets the pool and the slots of the prefill's blocks, and returns the slots on the
// host: [KV head][HeadStride].
func (d *paged) planBlocks(layer, of int, t *sim.Table, write *cuda.RopeArgs) (slots []int32) {
	row, r := &d.rows[of], d.of[of]
	heads, blocks := d.geo.KVHeads, d.geo.Blocks(row.To)
	write.HeadStride = int64(blocks)
	if row.Segmented { // one layer's blocks, in order
		write.HeadStride = int64(d.geo.Blocks(len(r.tokens)))
		write.Pool, write.Table = r.buffer(layer), d.orderAt
		return d.order
	}
	write.Pool = d.layerPool(layer)
	if !d.offload {
		slots, write.Table = d.pageTable(of, r, blocks)
		return slots
	}
	slots, write.Table = d.stage.Words(heads * blocks)
	if t.Blocks != blocks {
		d.queue.Fail(fmt.Errorf("request %d: a table of %d blocks for %d tokens", row.ID, t.Blocks,
			row.To))
		return slots
	}
	copy(slots, t.Slot)
	return slots
}

// pageTable returns the slots of a row's blocks without offloading, [KV head][blocks]. They are the
// same in every layer's pool, so they are uploaded once per step.
func (d *paged) pageTable(row int, r *request, blocks int) ([]int32, cuda.Ptr) {
	for _, t := range d.pageTables {
		if t.row == row {
			return t.slots, t.at
		}
	}
	heads := d.geo.KVHeads
	slots, at := d.stage.Words(heads * blocks)
	for h := range heads {
		for b := range blocks {
			slots[h*blocks+b] = r.pages[b]*int32(heads) + int32(h)
		}
	}
	d.pageTables = append(d.pageTables, pageTable{row, slots, at})
	return slots, at
}

// pageTable holds the slots of a row's blocks, on the host and on the GPU.
type pageTable struct {
	row   int
	slots []int32
	at    cuda.Ptr
}

// prefillArgs returns the attention of a prefill's rows, which begin at token at of the layer's
// batch. Without a prefix it reads keys and values as computed, otherwise from their blocks.
func (d *paged) prefillArgs(row *sim.Row, at int, write *cuda.RopeArgs) *cuda.PrefillArgs {
	md := d.model
	width, token := int64(md.HeadDim), int64(md.heads()*md.HeadDim)
	a := &cuda.PrefillArgs{
		Q: d.qkv(at, 0), K: d.qkv(at, md.QHeads), V: d.qkv(at, md.QHeads+md.KVHeads),
		Out:          d.scratch.attn.At + cuda.Ptr(at*md.QHeads*md.HeadDim*2),
		QTokenStride: token, QHeadStride: width, KTokenStride: token, KHeadStride: width,
		VTokenStride: token, VHeadStride: width,
		OutTokenStride: int64(md.QHeads * md.HeadDim), OutHeadStride: width,
		QTokens: int32(row.To - row.From), Prefix: int32(row.From),
		HeadsQ: int32(md.QHeads), HeadsKV: int32(md.KVHeads), HeadDim: int32(md.HeadDim),
		Scale: d.scale(),
	}
	if row.From > 0 {
		a.Pool, a.Table = write.Pool, write.Table
		a.TableStride, a.BlockTokens = int32(write.HeadStride), int32(d.geo.BlockTokens)
	}
	return a
}

// planOpen copies a prefill's open blocks of one layer from their stash to their slots.
func (d *paged) planOpen(layer int, r *request, slots []int32) {
	d.plan.opens = append(d.plan.opens, d.scatter(func(h int) (from, to cuda.Ptr) {
		return d.stashed(r, layer, h), d.pool + cuda.Ptr(int64(slots[h])*d.geo.BlockBytes)
	}))
}

// planStash saves the open block of every KV head of one layer until the request decodes; it is
// copied when the layer is written.
func (d *paged) planStash(layer int, r *request, stride int) {
	last := len(r.tokens) / d.geo.BlockTokens
	d.plan.stashes = append(d.plan.stashes, d.scatter(func(h int) (from, to cuda.Ptr) {
		return r.buffer(layer) + cuda.Ptr(int64(h*stride+last)*d.geo.BlockBytes), d.stashed(r, layer, h)
	}))
}

// stashed returns the address of an open block in its request's stash.
func (d *paged) stashed(r *request, layer, head int) cuda.Ptr {
	return r.stash.At + cuda.Ptr(int64(layer*d.geo.KVHeads+head)*d.geo.BlockBytes)
}

// scatter copies one block per KV head within the GPU.
func (d *paged) scatter(of func(head int) (from, to cuda.Ptr)) *cuda.GPUScatterArgs {
	heads := d.geo.KVHeads
	addresses, at := d.stage.Longs(2 * heads)
	for h := range heads {
		from, to := of(h)
		addresses[h], addresses[heads+h] = int64(from), int64(to)
	}
	return &cuda.GPUScatterArgs{
		Src: at, Dst: at + cuda.Ptr(8*heads), Count: int64(heads), BlockBytes: d.geo.BlockBytes,
		CTAs: int32(heads),
	}
}

func (d *paged) placeOf(row *sim.Row) int {
	for _, p := range d.active.rows {
		if p.row == row {
			return p.at
		}
	}
	panic(fmt.Sprintf("live: row of request %d is not in the layer", row.ID))
}
