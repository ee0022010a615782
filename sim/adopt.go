package sim

import (
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/prefix"
)

// With offloading, a request with a prefix hit starts with blocks that are in DRAM
// (kv.Cache.Adopt). Its decodes load the blocks that they select, as usual. Its prefill attends to
// the prefix in one of two ways (Spec.PrefixAttention):
//
//   - dense: to the whole prefix. A chunked prefill holds the prefix in the cache. A
//     layer-segmented prefill loads each layer's part into a buffer and drops it afterwards. Both
//     load while the previous layer computes, except that a chunked prefill does not if the engine
//     must free slots first (Engine.LoadsInTurn).
//   - selected: each chunk and KV head attends to a selection of the same size as a decode's, which
//     enters the cache. The prefix is never loaded whole. The prefill is then an approximation, as
//     decodes are.
//
// Digests of a prefix that is loaded whole are recomputed, without a price. Digests of a prefix
// that is selected from are in DRAM with their blocks, contiguous per head, and are loaded first.

// openSeq opens a request's sequence in the cache, starting with its prefix hit.
func (t *tiered) openSeq(r *request) {
	r.seq = t.cache.Open(r.Prompt + r.Output)
	r.seq.Request = r.ID
	if t.pool != nil {
		r.keys = r.keys[:0] // drop keys from before a preemption
	}
	if n := t.hitBlocks(r.Request); n > 0 {
		t.cache.Adopt(r.seq, n, t.keysOf(r, n))
	}
}

// nameBlocks makes a request's saved blocks visible to later requests, which share their slots.
func (t *tiered) nameBlocks(r *request) {
	_, saved := r.seq.Full()
	t.cache.Name(r.seq, t.keysOf(r, saved))
}

// keysOf returns the keys of a request's first blocks: their block numbers in the pool or, without
// a prefix cache, content keys from the trace, as far as the content is known. A prompt whose
// middle was removed has no keys, because the trace's content does not describe it.
func (t *tiered) keysOf(r *request, blocks int) []uint64 {
	if t.pool != nil {
		for b := len(r.keys); b < blocks; b++ {
			r.keys = append(r.keys, uint64(r.Grant.Blocks()[b]))
		}
		return r.keys[:blocks]
	}
	c := r.arrival.Content
	if c == nil || r.Prompt < r.arrival.Prompt {
		return nil
	}
	if len(r.keys) == 0 {
		chain := prefix.NewChain(c.Prompt)
		for b := range r.Prompt / t.Geometry.BlockTokens {
			key, ok := chain.Key((b + 1) * t.Geometry.BlockTokens)
			if !ok {
				break
			}
			r.keys = append(r.keys, key)
		}
	}
	return r.keys[:min(blocks, len(r.keys))]
}

// selectPrefix makes the groups of a prefill select from its prefix for this step's chunk.
func (t *tiered) selectPrefix(r *request) error {
	t.st.seqs = append(t.st.seqs, r.seq)
	return t.sel.among(r, max(0, t.hitBlocks(r.Request)-t.Spec.Selection.SinkBlocks), 1)
}

// prefixSelection sets sel to what group g of the sample selects from a prefix, plus all later
// blocks in the cache.
func (t *tiered) prefixSelection(r *request, g int, dense bool, sel *kv.Selection) {
	*sel = kv.Selection{All: dense || r.grid < 0}
	if sel.All {
		return
	}
	t.sel.pick(r, g, sel)
	sel.Sinks, sel.Tail = t.Spec.Selection.SinkBlocks, t.hitBlocks(r.Request)
	sel.Picks, sel.History = kv.Picks{Next: sel.Next[:sel.Used], Used: sel.Used}, nil
}

// accessPrefixes makes a layer's prefills access their selected prefix blocks in the cache.
func (t *tiered) accessPrefixes(l *kv.Layer) {
	for i, r := range t.st.prefills {
		if !t.st.batch.Prefills[i].In(l.Number) || !t.selectsPrefix(r.Request) {
			continue
		}
		for g := l.From; g < l.To; g++ {
			t.prefixSelection(r, g, t.sel.dense(l.Number), &t.st.sel)
			t.cache.Access(r.seq, g, &t.st.sel)
		}
	}
}

// adopts reports whether a chunked prefill of the batch loads its prefix into the cache while the
// previous layer computes.
func (t *tiered) adopts() bool {
	if t.Engine.LoadsInTurn {
		return false
	}
	for i, r := range t.st.prefills {
		if r.Hit > 0 && t.st.batch.Prefills[i].TokenFrom == r.Hit && r.pinned &&
			!t.selectsPrefix(r.Request) {
			return true
		}
	}
	return false
}

// prefixLoads returns the number of blocks over all KV heads that a layer's prefills load in
// addition to cache misses: prefix blocks for the layer buffer, or digests for selection.
func (t *tiered) prefixLoads(layer int) (n int64) {
	for i := range t.st.batch.Prefills {
		seg := &t.st.batch.Prefills[i]
		if !seg.In(layer) || seg.Req.Hit == 0 || seg.TokenFrom > seg.Req.Hit {
			continue
		}
		blocks := int64(t.hitBlocks(seg.Req))
		switch {
		case !t.selectsPrefix(seg.Req):
			if t.Spec.Segmented() {
				n += blocks
			}
		case !t.sel.dense(layer):
			n += (blocks*t.Geometry.MetaBytes + t.Geometry.BlockBytes - 1) / t.Geometry.BlockBytes
		}
	}
	return n * int64(t.Geometry.KVHeads)
}
