package live

import (
	"github.com/sparseserve/sparseserve/cuda/live/mem"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// request is the device's state of one request between steps.
type request struct {
	id     int
	seq    int32
	tokens []int32 // of the prompt, then the generated ones
	pages  []int32 // of full blocks in DRAM, or of all blocks in HBM without offloading
	lent   bool    // the pages are the server's, because its prefix cache keeps their KV
	// meta holds a digest for every full block, [layer][KV head][metaBlocks];
	// present when decode attention is sparse.
	meta       mem.Piece
	metaBlocks int
	// For the GPU's lookup: int32 [layer][KV head][tableBlocks], slot + 1 of blocks in HBM; and the
	// last step, counted from 1, in which it decoded.
	table       mem.Piece
	tableBlocks int
	decodes     int64
	// Of a layer-segmented prefill: its hidden state between steps, one layer's KV blocks
	// [KV head][blocks], and the open block of every group, which joins the cache with the first
	// decode.
	home, layer, stash mem.Piece
	other              mem.Piece // KV blocks of odd layers, if a prefix is loaded
	ahead              int       // the layer whose part of the prefix is being loaded; 0: none
	stashed            bool
	// Of latent attention: keys of the indexer [layer][most][IndexDim] and rows [layer][most][Width];
	// with hot buffers, when it decodes, rows [layer][slots][Width] and the kernel's state int32
	// [layer][2][slots] instead.
	most                         int // tokens
	keys, latents, hot, hotState mem.Piece
	// saves are save jobs in flight or done since the last step.
	saves []saved
	// hit is the number of blocks of its cached prefix. Each layer computes their digests when it
	// first computes the request.
	hit   int
	begun bool // it has computed tokens since it last gave up its KV
	// answer is the rest of the trace's text after the prompt: the request emits it, so that a later
	// prompt may quote it.
	answer []int32
}

// saved is a range of blocks of one or more layers that are in DRAM once a save job is done.
type saved struct {
	from, to int
	job      int64
}

// note records a save job. The layers of a block follow in sequence. In layer-segmented prefills
// with chunks all blocks of a layer come before the first block of the next layer.
func (r *request) note(from, to int, job int64) {
	if n := len(r.saves); n > 0 && r.saves[n-1].from == from && r.saves[n-1].to == to {
		r.saves[n-1].job = job
		return
	}
	r.saves = append(r.saves, saved{from, to, job})
}

// forget drops the entries of finished jobs.
func (r *request) forget(done int64) {
	n := 0
	for n < len(r.saves) && r.saves[n].job <= done {
		n++
	}
	r.saves = r.saves[:copy(r.saves, r.saves[n:])]
}

// waitFor waits until all layers of a block that the saver has are in DRAM.
func (r *request) waitFor(s *saver, block int) error {
	for i := len(r.saves) - 1; i >= 0; i-- {
		if e := &r.saves[i]; block >= e.from && block < e.to {
			return s.wait(e.job)
		}
	}
	return nil
}

// meet generates the texts of new requests, and reports whether there are any.
func (d *Device) meet(rows []sim.Row) (any bool) {
	for i := range rows {
		if row := &rows[i]; d.requests[row.ID] == nil {
			r := &request{id: row.ID}
			r.tokens, r.answer = d.text(row)
			d.requests[row.ID], any = r, true
		}
	}
	return any
}

// request returns the state of a row's request. It resets the state of a request that starts again.
func (d *Device) request(row *sim.Row) *request {
	r := d.requests[row.ID]
	if !r.begun {
		r.begun, r.hit = true, row.From/d.geo.BlockTokens
	}
	r.seq = row.Seq
	d.attention.hold(r, row)
	return r
}

// alloc returns device memory with the lifetime of a request.
func (d *Device) alloc(bytes int64, what string) mem.Piece {
	p, err := d.arena.Alloc(bytes, what)
	d.queue.Fail(err)
	return p
}

// text returns the tokens of a prompt and, if the trace names it, of the answer. They are generated
// from the name of their text, or from the request's number.
func (d *Device) text(row *sim.Row) (prompt, answer []int32) {
	if d.cfg.Prompt != nil {
		if tokens := d.cfg.Prompt(row.ID); len(tokens) > 0 {
			return append(make([]int32, 0, row.MaxTokens), tokens[:min(len(tokens), row.Prompt)]...), nil
		}
	}
	if len(row.Text) > 0 {
		tokens := make([]int32, 0, row.MaxTokens)
		for _, p := range row.Text {
			for i := range p.Tokens {
				tokens = append(tokens, d.made(p.ID, uint64(i)))
			}
		}
		return tokens[:row.Prompt:row.Prompt], tokens[row.Prompt:]
	}
	tokens := make([]int32, row.Prompt, row.MaxTokens)
	for i := range tokens {
		tokens[i] = d.made(uint64(row.ID), uint64(i))
	}
	return tokens, nil
}

// made returns a token of a generated text.
func (d *Device) made(text, at uint64) int32 {
	return int32(des.Hash(d.cfg.Seed, text, at, 0x70cc) % uint64(d.model.Vocab))
}

// addPages gives a request the pages that the step needs: with offloading one per block that
// becomes full, otherwise one per existing block. With a prefix cache the server assigns them.
func (d *paged) addPages(r *request, row *sim.Row) {
	need := d.geo.Blocks(row.To)
	if d.offload {
		need = row.To / d.geo.BlockTokens
	}
	if row.Pages != nil {
		r.lent = true
		had := min(len(r.pages), need)
		r.pages = append(r.pages[:0], row.Pages[:need]...)
		if d.offload { // pages of DRAM stay the same
			d.queue.Fail(d.dram.Reach(r.pages[had:]))
		}
		return
	}
	for len(r.pages) < need {
		p, err := d.pages.Alloc()
		if err != nil {
			d.queue.Fail(err)
			return
		}
		r.pages = append(r.pages, p)
	}
}

// openSegments allocates the buffers of a layer-segmented prefill.
func (d *paged) openSegments(r *request) {
	tokens, block := len(r.tokens), d.geo.BlockBytes
	r.home = d.alloc(int64(tokens*d.model.Hidden)*2, "saved activations")
	layer := int64(d.geo.Blocks(tokens)*d.geo.KVHeads) * block
	r.layer = d.alloc(layer, "KV of one layer of a prefill")
	if r.hit > 0 {
		r.other = d.alloc(layer, "KV of another layer of a prefill")
	}
	r.stash = d.alloc(int64(d.geo.Groups())*block, "open blocks of a prefill")
}

// closeSegments frees the buffers of a finished layer-segmented prefill, except for the open
// blocks.
func (d *paged) closeSegments(r *request) { d.free(&r.home, &r.layer, &r.other) }

// free returns pieces to the arena.
func (d *Device) free(pieces ...*mem.Piece) {
	for _, p := range pieces {
		d.arena.Free(*p)
		*p = mem.Piece{}
	}
}

// drop frees a request's KV, and the request when it has finished.
func (d *Device) drop(g sim.Dropped) {
	r := d.requests[g.ID]
	if r == nil {
		return // it was dropped before its first step
	}
	if n := len(r.saves); n > 0 { // its pages must not be written any more
		if err := d.saver.wait(r.saves[n-1].job); err != nil {
			d.queue.Fail(err)
			return
		}
		r.saves = r.saves[:0]
	}
	if !r.lent && len(r.pages) > 0 {
		d.pages.Free(r.pages)
	}
	r.pages, r.begun = r.pages[:0], false
	d.free(&r.home, &r.layer, &r.other, &r.meta, &r.stash, &r.table, &r.keys, &r.latents,
		&r.hot, &r.hotState)
	r.stashed, r.ahead = false, 0
	if r.seq >= 0 && d.bySeq[r.seq] == r {
		delete(d.bySeq, r.seq)
	}
	if g.Finished {
		delete(d.requests, g.ID)
		if d.cfg.Finished != nil {
			d.cfg.Finished(r.id, r.tokens)
		}
	}
}
