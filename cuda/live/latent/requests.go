package latent

import (
	"fmt"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live/mem"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// request is the device's state of one request between steps. Its memory is allocated in its first
// step, for its maximum number of tokens.
type request struct {
	id, most int
	tokens   []int32   // prompt, then what has been generated
	keys     mem.Piece // of the indexer: [layer][most][IndexDim]
	rows     mem.Piece // [layer][most][width]; with hot buffers, while it prefills
	// With hot buffers, when it decodes: rows [layer][slots][width], the kernel's state int32
	// [layer][2][slots], and pages of the host, each with a block of all layers.
	buffers, state mem.Piece
	pages          []int32
}

// request returns the state of a row's request. It resets the state of a request that starts again.
func (d *Device) request(row *sim.Row) *request {
	s := &d.shape
	r := d.requests[row.ID]
	if r == nil {
		r = &request{id: row.ID, tokens: make([]int32, row.Prompt, row.MaxTokens)}
		for i := range r.tokens {
			r.tokens[i] = int32(des.Hash(d.cfg.Seed, uint64(row.ID), uint64(i), 0x70cc) % uint64(s.Vocab))
		}
		d.requests[row.ID] = r
	}
	if r.keys.Bytes == 0 {
		r.most = row.MaxTokens
		r.keys = d.alloc(s.Layers*r.most*s.KeyBytes(), "keys of the indexer")
		r.rows = d.alloc(s.Layers*r.most*s.RowBytes(), "KV")
	}
	if d.slots > 0 && (row.Decode || row.Emits) {
		d.reach(r, row.To)
	}
	if d.slots > 0 && row.Emits && r.buffers.Bytes == 0 {
		r.buffers = d.alloc(s.Layers*d.slots*s.RowBytes(), "a hot buffer")
		r.state = d.alloc(s.Layers*2*d.slots*4, "a hot buffer's state")
	}
	return r
}

func (d *Device) alloc(bytes int, what string) mem.Piece {
	p, err := d.arena.Alloc(int64(bytes), what)
	if err != nil {
		d.fail(fmt.Errorf("live: %w; lower system.max_requests or the workload's lengths", err))
	}
	return p
}

func (d *Device) free(pieces ...*mem.Piece) {
	for _, p := range pieces {
		d.arena.Free(*p)
		*p = mem.Piece{}
	}
}

// reach gives a request host pages for the given tokens.
func (d *Device) reach(r *request, tokens int) {
	pinned := d.dram.Pinned()
	for d.err == nil && len(r.pages) < d.cfg.Geometry.Blocks(tokens) {
		p, err := d.dram.Alloc()
		d.fail(err)
		r.pages = append(r.pages, p)
	}
	d.grew = d.grew || d.dram.Pinned() > pinned
}

// drop frees a request's KV, and the request when it has finished.
func (d *Device) drop(g sim.Dropped) {
	r := d.requests[g.ID]
	if r == nil {
		return // it was dropped before its first step
	}
	d.free(&r.keys, &r.rows, &r.buffers, &r.state)
	if d.dram != nil {
		d.dram.Free(r.pages)
		r.pages = r.pages[:0]
	}
	if g.Finished {
		delete(d.requests, g.ID)
		if d.cfg.Finished != nil {
			d.cfg.Finished(r.id, r.tokens)
		}
	}
}

// row returns the address of a token's row in a layer; key returns the address of its key.
func (d *Device) row(r *request, layer, token int) cuda.Ptr {
	return r.rows.At + cuda.Ptr((layer*r.most+token)*d.shape.RowBytes())
}

func (d *Device) key(r *request, layer, token int) cuda.Ptr {
	return r.keys.At + cuda.Ptr((layer*r.most+token)*d.shape.KeyBytes())
}

// settle ends a prefill with hot buffers in one layer: its rows are copied to the host, and to the
// buffer if they all fit; otherwise the buffer begins empty. The copies are on the stream before
// any work that overwrites their source.
func (d *Device) settle(r *request, layer, tokens int) {
	block, row := d.cfg.Geometry.BlockTokens, d.shape.RowBytes()
	for i := 0; i*block < tokens; i++ {
		n := min(block, tokens-i*block)
		d.launch(&cuda.MemcpyArgs{Dst: d.dram.Block(r.pages[i], layer), Src: d.row(r, layer, i*block),
			Bytes: int64(n * row)})
	}
	d.counters.Saved += int64(tokens)
	if tokens <= d.slots {
		d.launch(&cuda.MemcpyArgs{Dst: r.buffers.At + cuda.Ptr(layer*d.slots*row),
			Src: d.row(r, layer, 0), Bytes: int64(tokens * row)})
	}
	state := r.state.At + cuda.Ptr(layer*2*d.slots*4)
	from := d.rows.emptyState
	if tokens <= d.slots {
		from = d.rows.fullState
	}
	d.launch(&cuda.MemcpyArgs{Dst: state, Src: from, Bytes: int64(4 * d.slots)},
		&cuda.MemcpyArgs{Dst: state + cuda.Ptr(4*d.slots), Src: d.rows.fullState,
			Bytes: int64(4 * d.slots)})
}
