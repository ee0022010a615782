package live

import (
	"slices"
	"unsafe"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/sim"
)

// A prefill that hits begins with blocks that are in its pages, in HBM, or with offloading in DRAM.
// A chunked prefill finds them in the cache's slots, loaded like other blocks. A layer-segmented
// prefill loads a layer's blocks into one of two buffers while the previous layer computes. Digests
// belong to a request, so each layer recomputes the digests of the prefix.

// hits is the work per layer for the prefixes of layer-segmented prefills.
type hits struct {
	layer int // for which it is named; below 0: none
	// Requests whose prefix loads into the buffer of this layer and of the next, and whether this
	// layer waits for loads that have already begun.
	now, ahead []*request
	awaits     bool
	prefix     cuda.Operation // the load into this layer's buffer
	next       cuda.Operation // into the next one's
	digests    []cuda.Operation
}

// nameHits prepares the hits of a layer, once. The host does so while the previous layer computes.
// Later, when the host knows that layer's selection, the GPU waits for the host.
func (d *paged) nameHits(layer int) {
	h := &d.hits
	runs := func(r sim.Row) bool { return r.In(layer) }
	if h.layer == layer || !slices.ContainsFunc(d.rows, runs) { // the step skips a layer without rows
		return
	}
	h.layer, h.awaits = layer, false
	h.now, h.ahead, h.digests = h.now[:0], h.ahead[:0], h.digests[:0]
	for i := range d.rows {
		row, r := &d.rows[i], d.of[i]
		if !row.Segmented || !r.begins(row, d.geo.BlockTokens) {
			continue
		}
		h.plan(layer, row, r)
		if d.sparse && row.In(layer) {
			c := closed{req: r, pool: r.buffer(layer), to: r.hit, slots: d.order,
				stride: d.geo.Blocks(len(r.tokens))}
			d.planDigest(layer, &c)
			h.digests = append(h.digests, c.digest)
		}
	}
	h.prefix, h.next = d.prefixLoad(layer, h.now, 0), d.prefixLoad(layer+1, h.ahead, AheadCTAs)
	if len(h.now)+len(h.ahead)+len(h.digests) > 0 {
		d.stage.Send()
	}
}

// prefetch loads prefixes during the computation of layers.
type prefetch struct {
	stream cuda.Stream
	begun  cuda.Event    // this layer's part is there, and the next one's buffer is free
	loaded [2]cuda.Event // of layers of even and odd numbers
}

// open creates the stream and its events.
func (p *prefetch) open(m cuda.Machine) (err error) {
	p.stream, err = streamAndEvents(m, &p.begun, &p.loaded[0], &p.loaded[1])
	return err
}

// streamAndEvents creates a stream of high priority, whose CTAs need not wait until all of others'
// are resident, and events without a time.
func streamAndEvents(m cuda.Machine, events ...*cuda.Event) (stream cuda.Stream, err error) {
	stream, err = m.StreamCreate(true)
	for i := 0; i < len(events) && err == nil; i++ {
		*events[i], err = m.EventCreate(false)
	}
	return stream, err
}

// loadPrefixes loads the layer's prefixes, or waits for them, and starts the next layer's loads
// during this layer. The link transfers them in the order of need.
func (d *paged) loadPrefixes(layer int) {
	p, f := &d.hits, &d.prefetch
	if p.awaits {
		_ = d.queue.StreamWait(d.stream, f.loaded[layer%2])
	}
	if p.prefix != nil {
		d.launch(p.prefix)
	}
	if p.next != nil {
		_ = d.queue.EventRecord(f.begun, d.stream)
		_ = d.queue.StreamWait(f.stream, f.begun)
		_ = d.queue.Launch(p.next, f.stream)
		_ = d.queue.EventRecord(f.loaded[(layer+1)%2], f.stream)
	}
	if p.awaits || p.prefix != nil {
		d.clock.mark(phaseLoadStall)
	}
}

// buffer returns the address of a layer's KV in a layer-segmented prefill.
func (r *request) buffer(layer int) cuda.Ptr {
	if r.other.Bytes > 0 && layer%2 == 1 {
		return r.other.At
	}
	return r.layer.At
}

// begins reports whether a row starts a layer's prefill after a prefix hit.
func (r *request) begins(row *sim.Row, blockTokens int) bool {
	return r.hit > 0 && row.From == r.hit*blockTokens
}

// planHit prepares the digests of the prefix of a chunked prefill, which is in the slots of c.
func (d *paged) planHit(layer int, row *sim.Row, r *request, c closed) {
	if d.sparse && !row.Segmented && r.begins(row, d.geo.BlockTokens) {
		c.from, c.to = 0, r.hit
		d.planDigest(layer, &c)
		d.plan.hits = append(d.plan.hits, c.digest)
	}
}

// plan adds a row whose prefix must be loaded, unless its load has begun, and the next layer's load
// if that layer is in the same step. Only other rows may run the layer before a prefill's first
// layer in a step; its prefix also loads during that layer.
func (h *hits) plan(layer int, row *sim.Row, r *request) {
	switch {
	case !row.In(layer):
	case r.ahead == layer && layer > 0:
		h.awaits = true
	default:
		h.now = append(h.now, r)
	}
	if r.ahead = 0; row.In(layer + 1) {
		r.ahead = layer + 1
		h.ahead = append(h.ahead, r)
	}
}

// AheadCTAs is the number of SMs that FlashH2D occupies while the previous layer computes.
const AheadCTAs = 2

// prefixLoad loads a layer's prefixes of some requests into the layer's buffers, with ctas CTAs (0:
// the number that is fastest alone). It returns nil without requests. It is one launch: a second
// could begin only when SMs are free, and queued linears take them first.
func (d *paged) prefixLoad(layer int, of []*request, ctas int32) cuda.Operation {
	heads, n := d.geo.KVHeads, 0
	for _, r := range of {
		n += heads * r.hit
	}
	if n == 0 {
		return nil
	}
	addresses, at := d.loadAddresses(n)
	size, first := d.geo.BlockBytes, 0 // the request's first block
	for _, r := range of {
		buffer, stride := int64(r.buffer(layer)), d.geo.Blocks(len(r.tokens))
		for b, page := range r.pages[:r.hit] {
			from := int64(d.dram.Block(page, layer*heads))
			for h := range heads { // adjacent in a page
				i := first + h*r.hit + b
				addresses[i] = from + int64(h)*size
				addresses[n+i] = buffer + int64(h*stride+b)*size
			}
		}
		first += heads * r.hit
	}
	d.counters.Loaded += int64(n)
	return d.load(cuda.BlocksArgs{Src: at, Dst: at + cuda.Ptr(8*n), Count: int64(n),
		BlockBytes: d.geo.BlockBytes, CTAs: ctas})
}

// loadAddresses returns memory for the sources and destinations of n blocks that the engine can
// read: copies by the engine read the addresses on the host.
func (d *paged) loadAddresses(n int) (words []int64, at cuda.Ptr) {
	words, at = d.stage.Longs(2 * n)
	if d.cfg.Spec.Offload.Load != "flash" {
		at = cuda.Ptr(uintptr(unsafe.Pointer(unsafe.SliceData(words))))
	}
	return words, at
}
