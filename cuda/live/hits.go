package live

import (
	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live/mem"
	"github.com/sparseserve/sparseserve/sim"
)

// A prefill that hits begins with blocks that are in its pages: of HBM, or of DRAM with offloading.
// Chunks of it find them in the cache's slots, loaded as any others. A layer by itself has its part
// loaded into its buffer. Digests belong to a request, so that each layer makes those of the prefix
// anew.

// begins says whether a row begins a layer's prefill after a prefix that it hit.
func (r *request) begins(row *sim.Row, blockTokens int) bool {
	return r.hit > 0 && row.From == r.hit*blockTokens
}

// planHit readies what a layer does once with the prefix that a prefill begins with, which is in
// these slots.
func (d *Device) planHit(layer int, row *sim.Row, r *request, c closed) {
	if !r.begins(row, d.geo.BlockTokens) {
		return
	}
	if row.Segmented {
		d.planPrefixLoad(layer, r, c.stride)
	}
	if d.sparse {
		c.from, c.to = 0, r.hit
		d.planDigest(layer, &c)
		d.plan.hits = append(d.plan.hits, c.digest)
	}
}

// planPrefixLoad readies the loads of a layer's part of a prefix into the layer's buffer.
func (d *Device) planPrefixLoad(layer int, r *request, stride int) {
	heads, n := d.geo.KVHeads, d.geo.KVHeads*r.hit
	addresses, at := d.loadAddresses(n)
	for h := range heads {
		for b := range r.hit {
			i := h*r.hit + b
			addresses[i] = int64(d.dram.Block(r.pages[b], layer*heads+h))
			addresses[n+i] = int64(r.layer.At) + int64(h*stride+b)*d.geo.BlockBytes
		}
	}
	d.plan.prefixes = append(d.plan.prefixes, d.load(cuda.BlocksArgs{Src: at,
		Dst: at + cuda.Ptr(8*n), Count: int64(n), BlockBytes: d.geo.BlockBytes}))
	d.counters.Loaded += int64(n)
}

// loadAddresses is memory for the sources and destinations of n blocks, where the engine reads it.
func (d *Device) loadAddresses(n int) ([]int64, cuda.Ptr) {
	if d.cfg.Spec.LoadEngine == "flash" {
		return d.stage.Longs(2 * n)
	}
	return d.stage.Note(2 * n) // copies by the engine read the addresses on the host
}

// reach pins the memory of pages that the server has given.
func (d *Device) reach(pages []int32) {
	if pool, ok := d.pages.(*mem.HostPool); ok {
		d.queue.Fail(pool.Reach(pages))
	}
}
