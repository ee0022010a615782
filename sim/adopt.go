package sim

import (
	"errors"
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/prefix"
	"github.com/sparseserve/sparseserve/sim/sched"
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
// Digests of a prefix that is loaded whole are recomputed. Digests of a prefix that is selected
// from are in DRAM with their blocks, contiguous per head, and are loaded first.

// selectsPrefix reports whether a prefill attends to a selection of its cached prefix.
func (s *Server) selectsPrefix(r *sched.Request) bool {
	return r.Hit > 0 && s.cache != nil && s.Spec.PrefixCache.Attend == PrefixSelected
}

// checkPrefixes returns an error for settings of prefix loads and prefix selection that the system
// does not support.
func (s *Server) checkPrefixes() error {
	if s.Spec.PrefixCache.LoadWeight > 0 && (!s.Spec.Offload.On ||
		s.Spec.PrefixCache.Attend == PrefixSelected) {
		return errors.New("sim: only prefills with offloading that attend to all of a prefix load it " +
			"in their steps; set prefix_cache.load_weight = 0")
	}
	if s.Spec.PrefixCache.Attend != PrefixSelected {
		return nil
	}
	switch {
	case !s.Spec.Offload.On || !s.Spec.Sparse():
		return errors.New("sim: only sparse attention with offloading selects blocks of a prefix; set " +
			"prefix_cache.attend = \"dense\"")
	case s.DeviceSelects || s.Recording != nil || s.Addressed || s.RecordTo != nil || s.Trace != nil:
		return errors.New("sim: prefills select from a prefix where selections are drawn from the " +
			"score process, neither recorded nor computed; set prefix_cache.attend = \"dense\"")
	case s.Spec.SparsePrefill():
		return errors.New("sim: a sparse prefill has a selection of its own; set " +
			"prefix_cache.attend = \"dense\"")
	}
	return nil
}

// hitBlocks returns the number of blocks in a request's prefix hit.
func (s *Server) hitBlocks(r *sched.Request) int { return r.Hit / s.Geometry.BlockTokens }

// looseBlocks returns the number of leading blocks that a chunked prefill need not keep in HBM.
func (s *Server) looseBlocks(r *sched.Request) int {
	if s.selectsPrefix(r) {
		return s.hitBlocks(r)
	}
	return 0
}

// openSeq opens a request's sequence in the cache, starting with its prefix hit.
func (s *Server) openSeq(r *request) {
	r.seq = s.cache.Open(r.Prompt + r.Output)
	r.seq.Request = r.ID
	if s.prefixes != nil {
		r.keys = r.keys[:0] // drop keys from before a preemption
	}
	if n := s.hitBlocks(r.Request); n > 0 {
		s.cache.Adopt(r.seq, n, s.keysOf(r, n))
	}
}

// nameBlocks makes a request's saved blocks visible to later requests, which share their slots.
func (s *Server) nameBlocks(r *request) {
	_, saved := r.seq.Full()
	if s.pool != nil {
		s.pool.Enter(&r.table, saved)
	}
	s.cache.Name(r.seq, s.keysOf(r, saved))
}

// keysOf returns the keys of a request's first blocks: their block numbers in the pool or, without
// a prefix cache, content keys from the trace, as far as the content is known. A prompt whose
// middle was removed has no keys, because the trace's content does not describe it.
func (s *Server) keysOf(r *request, blocks int) []uint64 {
	if s.prefixes != nil {
		for b := len(r.keys); b < blocks; b++ {
			r.keys = append(r.keys, uint64(r.table.Block(b)))
		}
		return r.keys[:blocks]
	}
	c := r.arrival.Content
	if c == nil || r.prompt < r.arrival.Prompt {
		return nil
	}
	if len(r.keys) == 0 {
		chain := prefix.NewChain(c.Prompt)
		for b := range r.prompt / s.Geometry.BlockTokens {
			key, ok := chain.Key((b + 1) * s.Geometry.BlockTokens)
			if !ok {
				break
			}
			r.keys = append(r.keys, key)
		}
	}
	return r.keys[:min(blocks, len(r.keys))]
}

// selectPrefix makes the groups of a prefill select from its prefix for this step's chunk.
func (s *Server) selectPrefix(r *request) error {
	s.step.seqs = append(s.step.seqs, r.seq)
	return s.sel.among(r, max(0, s.hitBlocks(r.Request)-s.Spec.Selection.SinkBlocks))
}

// prefixSelection sets sel to what group g of the sample selects from a prefix, plus all later
// blocks in the cache.
func (s *Server) prefixSelection(r *request, g int, dense bool, sel *kv.Selection) {
	*sel = kv.Selection{All: dense || r.grid < 0}
	if sel.All {
		return
	}
	s.sel.pick(r, g, sel)
	sel.Sinks, sel.Tail = s.Spec.Selection.SinkBlocks, s.hitBlocks(r.Request)
	sel.Next = sel.Next[:sel.Used]
	sel.Follows, sel.Added, sel.Came, sel.Dropped, sel.History = false, nil, nil, nil, nil
}

// accessPrefixes makes a layer's prefills access their selected prefix blocks in the cache.
func (s *Server) accessPrefixes(l *kv.Layer) {
	for i := range s.batch.Prefills {
		seg := &s.batch.Prefills[i]
		if !seg.In(l.Number) || !s.selectsPrefix(seg.Req) {
			continue
		}
		r := s.requests[seg.Req]
		for g := l.From; g < l.To; g++ {
			s.prefixSelection(r, g, s.sel.dense(l.Number), &s.step.sel)
			s.cache.Access(r.seq, g, &s.step.sel)
		}
	}
}

// span returns the attention span of a prefill in a layer.
func (s *Server) span(seg *sched.Segment, layer int) Span {
	span := Span{Query: seg.Tokens(), Prefix: seg.TokenFrom}
	if s.selectsPrefix(seg.Req) && !s.sel.dense(layer) {
		span.Prefix += s.attendedPrefix(s.requests[seg.Req], layer) - seg.Req.Hit
	}
	return span
}

// attendedPrefix returns the number of prefix tokens that a KV head of a prefill attends to in a
// layer. It is the mean if heads differ.
func (s *Server) attendedPrefix(r *request, layer int) int {
	if r.grid < 0 {
		return r.Hit
	}
	if s.sel.fixed {
		return min(r.Hit, (s.Spec.Selection.SinkBlocks+Candidates(&s.Spec))*s.Geometry.BlockTokens)
	}
	heads, n := s.Geometry.KVHeads, 0
	for h := range heads {
		n += s.Spec.Selection.SinkBlocks + s.sel.attends(r, layer*heads+h)
	}
	return min(r.Hit, n*s.Geometry.BlockTokens/heads)
}

// scoredOfPrefixes returns the number of prefix blocks that prefills score in a layer. Each chunk
// scores with one query per head, the mean of its queries.
func (s *Server) scoredOfPrefixes(layer int) (n int64) {
	for i := range s.batch.Prefills {
		if seg := &s.batch.Prefills[i]; seg.In(layer) && s.selectsPrefix(seg.Req) {
			n += int64(s.hitBlocks(seg.Req))
		}
	}
	return n
}

// adopts reports whether a chunked prefill of the batch loads its prefix into the cache while the
// previous layer computes.
func (s *Server) adopts() bool {
	if s.Engine.LoadsInTurn {
		return false
	}
	return slices.ContainsFunc(s.batch.Prefills, func(seg sched.Segment) bool {
		return seg.Req.Hit > 0 && seg.TokenFrom == seg.Req.Hit && s.requests[seg.Req].pinned &&
			!s.selectsPrefix(seg.Req)
	})
}

// prefixLoads returns the number of blocks over all KV heads that a layer's prefills load in
// addition to cache misses: prefix blocks for the layer buffer, or digests for selection.
func (s *Server) prefixLoads(layer int) (n int64) {
	for i := range s.batch.Prefills {
		seg := &s.batch.Prefills[i]
		if !seg.In(layer) || seg.Req.Hit == 0 || seg.TokenFrom > seg.Req.Hit {
			continue
		}
		blocks := int64(s.hitBlocks(seg.Req))
		switch {
		case !s.selectsPrefix(seg.Req):
			if s.sched.Planner().Segmented() {
				n += blocks
			}
		case !s.sel.dense(layer):
			n += (blocks*s.Geometry.MetaBytes + s.Geometry.BlockBytes - 1) / s.Geometry.BlockBytes
		}
	}
	return n * int64(s.Geometry.KVHeads)
}

// prefixSet returns the HBM in bytes for the prefix blocks that a prefill selects: over all layers,
// or only what must be resident at once.
func (s *Server) prefixSet(r *sched.Request, all bool) int64 {
	if !s.selectsPrefix(r) {
		return 0
	}
	blocks := s.hitBlocks(r)
	if s.Spec.Selection.DenseLayers == 0 {
		kept := min(blocks, s.Spec.Selection.SinkBlocks)
		blocks = kept + s.sel.policy.AtOnce(blocks-kept)
	}
	need := int64(math.Ceil(float64(blocks)*s.cache.AtOnce())) * s.Geometry.BlockBytes
	if all {
		need = max(need, s.sel.bytes(r.Hit))
	}
	return need
}
