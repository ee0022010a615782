package live

import (
	"github.com/sparseserve/sparseserve/cuda/live/mem"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// request is what the device keeps of one request between steps.
type request struct {
	id     int
	seq    int32
	tokens []int32 // prompt, then what has been generated
	pages  []int32 // of full blocks in DRAM, or of all blocks in HBM without offloading
	// meta holds a digest for every full block, [layer][KV head][metaBlocks];
	// present when decode attention is sparse.
	meta       mem.Piece
	metaBlocks int
	// Of the GPU's lookup: int32 [layer][KV head][tableBlocks] slot + 1 of what is in HBM; and the
	// step, from 1 on, that it last decoded in.
	table       mem.Piece
	tableBlocks int
	decodes     int64
	// A layer-segmented prefill: the hidden state that it carries from step to
	// step, one layer's KV blocks [KV head][blocks], and the open block of every
	// group, which joins the cache with the first decode.
	home, layer, stash mem.Piece
	stashed            bool
	// saves are those in flight or done since the last step, by job.
	saves []saved
}

// saved is a range of blocks of one or more layers that are in DRAM once a save job is done.
type saved struct {
	from, to int
	job      int64
}

// note records a save job. The layers of a block follow one another at once, but
// for those of layer-segmented prefills in chunks: all of a layer's blocks come
// before the first of the next layer.
func (r *request) note(from, to int, job int64) {
	if n := len(r.saves); n > 0 && r.saves[n-1].from == from && r.saves[n-1].to == to {
		r.saves[n-1].job = job
		return
	}
	r.saves = append(r.saves, saved{from, to, job})
}

// forget drops the entries of jobs that are done.
func (r *request) forget(done int64) {
	n := 0
	for n < len(r.saves) && r.saves[n].job <= done {
		n++
	}
	r.saves = r.saves[:copy(r.saves, r.saves[n:])]
}

// waitFor waits until all layers of a block that were handed to the saver are in
// DRAM.
func (r *request) waitFor(s *saver, block int) error {
	for i := len(r.saves) - 1; i >= 0; i-- {
		if e := &r.saves[i]; block >= e.from && block < e.to {
			return s.wait(e.job)
		}
	}
	return nil
}

// request returns the state of a row's request, new or begun anew.
func (d *Device) request(row *sim.Row) (*request, error) {
	r := d.requests[row.ID]
	if r == nil {
		r = &request{id: row.ID, tokens: d.prompt(row)}
		d.requests[row.ID] = r
	}
	if r.seq = row.Seq; row.Seq >= 0 {
		d.bySeq[row.Seq] = r
		r.forget(d.saver.finished())
	}
	if err := d.addPages(r, row); err != nil {
		return nil, err
	}
	if d.sparse && r.meta.Bytes == 0 {
		r.metaBlocks = d.geo.Blocks(row.MaxTokens)
		var err error
		if r.meta, err = d.arena.Take(int64(d.geo.Groups()*r.metaBlocks)*d.geo.MetaBytes,
			"block metadata"); err != nil {
			return nil, err
		}
	}
	if d.lookup.on && r.table.Bytes == 0 {
		if err := d.openTable(r, row.MaxTokens); err != nil {
			return nil, err
		}
	}
	if row.Segmented && r.layer.Bytes == 0 {
		return r, d.openSegments(r, row)
	}
	return r, nil
}

// prompt makes up the tokens of a prompt from the request's number.
func (d *Device) prompt(row *sim.Row) []int32 {
	if d.cfg.Prompt != nil {
		if tokens := d.cfg.Prompt(row.ID); len(tokens) > 0 {
			return append(make([]int32, 0, row.MaxTokens), tokens[:min(len(tokens), row.Prompt)]...)
		}
	}
	tokens := make([]int32, row.Prompt, row.MaxTokens)
	for i := range tokens {
		tokens[i] = int32(des.Hash(d.cfg.Seed, uint64(row.ID), uint64(i),
			0x70cc) % uint64(d.model.Vocab))
	}
	return tokens
}

// addPages gives a request the pages that the step needs: with offloading one
// for each block that becomes full, without one for each that exists.
func (d *Device) addPages(r *request, row *sim.Row) error {
	need := d.geo.Blocks(row.To)
	if d.offload {
		need = row.To / d.geo.BlockTokens
	}
	for len(r.pages) < need {
		p, err := d.pages.Take()
		if err != nil {
			return err
		}
		r.pages = append(r.pages, p)
	}
	return nil
}

// openSegments allocates the buffers of a layer-segmented prefill.
func (d *Device) openSegments(r *request, row *sim.Row) (err error) {
	target := int64(len(r.tokens))
	if r.home, err = d.arena.Take(target*int64(d.model.Hidden)*2, "saved activations"); err != nil {
		return err
	}
	if r.layer, err = d.arena.Take(int64(d.geo.Blocks(int(target))*d.geo.KVHeads)*d.geo.BlockBytes,
		"KV of one layer of a prefill"); err != nil {
		return err
	}
	r.stash, err = d.arena.Take(int64(d.geo.Groups())*d.geo.BlockBytes, "open blocks of a prefill")
	return err
}

// closeSegments gives back what a finished layer-segmented prefill no longer
// needs: all but the open blocks.
func (d *Device) closeSegments(r *request) {
	d.arena.Give(r.home)
	d.arena.Give(r.layer)
	r.home, r.layer = mem.Piece{}, mem.Piece{}
}

// drop gives up a request's KV, and the request when it has finished.
func (d *Device) drop(g sim.Dropped) error {
	r := d.requests[g.ID]
	if r == nil {
		return nil // it was dropped before its first step
	}
	if n := len(r.saves); n > 0 { // its pages must not be written any more
		if err := d.saver.wait(r.saves[n-1].job); err != nil {
			return err
		}
		r.saves = r.saves[:0]
	}
	d.pages.Give(r.pages)
	r.pages = r.pages[:0]
	d.closeSegments(r)
	d.arena.Give(r.meta)
	d.arena.Give(r.stash)
	d.arena.Give(r.table)
	r.meta, r.stash, r.table, r.stashed = mem.Piece{}, mem.Piece{}, mem.Piece{}, false
	if r.seq >= 0 && d.bySeq[r.seq] == r {
		delete(d.bySeq, r.seq)
	}
	if g.Finished {
		delete(d.requests, g.ID)
		if d.cfg.Finished != nil {
			d.cfg.Finished(r.id, r.tokens)
		}
	}
	return nil
}
