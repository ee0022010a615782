package sim

import (
	"errors"
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/prefix"
	"github.com/sparseserve/sparseserve/sim/sched"
)

// With offloading a request that hits begins with blocks that are in DRAM (kv.Cache.Adopt). Its
// decodes load those that they select, as any others. What prefills the rest of the prompt
// attends to the prefix in one of two ways (Spec.PrefixAttention):
//
//   - dense: to all of it. A chunked prefill has it in the cache; a layer-segmented one loads each
//     layer's part into a buffer, and drops it. Both load while they compute the layer before; the
//     first unless the engine needs the slots to be free (Engine.LoadsInTurn).
//   - selected: each chunk and KV head to a selection of the decodes' size, which enters the cache.
//     No hit loads whole. What is prefilled is then an approximation, as decodes are.
//
// Digests are made anew of blocks that load whole. Those of a prefix that is selected from are in
// DRAM with their blocks, block after block of a head, and come first.

// selectsPrefix says whether a prefill attends to a selection of the prefix that it begins with.
func (s *Server) selectsPrefix(r *sched.Request) bool {
	return r.Hit > 0 && s.cache != nil && s.Spec.PrefixCache.Attend == PrefixSelected
}

// checkPrefixes refuses what selects no prefix, and what loads none whole.
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
	case s.external() || s.Addressed || s.RecordTo != nil || s.Trace != nil:
		return errors.New("sim: prefills select from a prefix where selections are drawn from the " +
			"score process, neither recorded nor computed; set prefix_cache.attend = \"dense\"")
	case s.Spec.SparsePrefill():
		return errors.New("sim: a sparse prefill has a selection of its own; set " +
			"prefix_cache.attend = \"dense\"")
	}
	return nil
}

// hitBlocks is the blocks of the prefix that a request began with.
func (s *Server) hitBlocks(r *sched.Request) int { return r.Hit / s.Geometry.BlockTokens }

// looseBlocks is the first blocks that a chunked prefill need not hold.
func (s *Server) looseBlocks(r *sched.Request) int {
	if s.selectsPrefix(r) {
		return s.hitBlocks(r)
	}
	return 0
}

// openSeq gives a request its part of the cache, with the prefix that it hit.
func (s *Server) openSeq(r *request) {
	r.seq = s.cache.Open(r.Prompt + r.Output)
	r.seq.Request = r.ID
	if s.prefixes != nil {
		r.keys = r.keys[:0] // of the blocks that it held before a preemption
	}
	if n := s.hitBlocks(r.Request); n > 0 {
		s.cache.Adopt(r.seq, n, s.keysOf(r, n))
	}
}

// nameBlocks has later requests find the blocks that have been saved, and share their slots.
func (s *Server) nameBlocks(r *request) {
	_, saved := r.seq.Full()
	if s.pool != nil {
		s.pool.Enter(&r.table, saved)
	}
	s.cache.Name(r.seq, s.keysOf(r, saved))
}

// keysOf returns the keys of a request's first so many blocks: their places in the pool, or of a
// prompt the content that its trace gives, as far as it is known. A prompt whose middle was removed
// is not what that says.
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

// selectPrefix has the groups of a prefill select from its prefix, for the chunk of this step.
func (s *Server) selectPrefix(r *request) error {
	s.step.seqs = append(s.step.seqs, r.seq)
	return s.decide(r, max(0, s.hitBlocks(r.Request)-s.Spec.Selection.SinkBlocks))
}

// prefixSelection returns what group g of the sample selects of a prefix, with all that follows it
// in the cache.
func (s *Server) prefixSelection(r *request, g int, dense bool, sel *kv.Selection) {
	*sel = kv.Selection{All: dense || r.grid < 0}
	if sel.All {
		return
	}
	s.pick(r, g, sel)
	sel.Sinks, sel.Tail = s.Spec.Selection.SinkBlocks, s.hitBlocks(r.Request)
	sel.Next = sel.Next[:sel.Used]
	sel.Follows, sel.Added, sel.Came, sel.Dropped, sel.History = false, nil, nil, nil, nil
}

// accessPrefixes has the prefills of a layer touch what they select.
func (s *Server) accessPrefixes(l *kv.Layer) {
	for i := range s.batch.Prefills {
		seg := &s.batch.Prefills[i]
		if !seg.In(l.Number) || !s.selectsPrefix(seg.Req) {
			continue
		}
		r := s.requests[seg.Req]
		for g := l.From; g < l.To; g++ {
			s.prefixSelection(r, g, s.dense(l.Number), &s.step.sel)
			s.cache.Access(r.seq, g, &s.step.sel)
		}
	}
}

// span is the attention of a prefill in a layer.
func (s *Server) span(seg *sched.Segment, layer int) Span {
	span := Span{Query: seg.Tokens(), Prefix: seg.TokenFrom}
	if s.selectsPrefix(seg.Req) && !s.dense(layer) {
		span.Prefix += s.attendedPrefix(s.requests[seg.Req], layer) - seg.Req.Hit
	}
	return span
}

// attendedPrefix is the tokens of its prefix that a KV head of a prefill attends to in a layer, the
// mean where heads differ.
func (s *Server) attendedPrefix(r *request, layer int) int {
	if r.grid < 0 {
		return r.Hit
	}
	if s.fixed {
		return min(r.Hit, (s.Spec.Selection.SinkBlocks+Candidates(&s.Spec))*s.Geometry.BlockTokens)
	}
	heads, n := s.Geometry.KVHeads, 0
	for h := range heads {
		n += s.Spec.Selection.SinkBlocks + s.used(r, layer*heads+h)
	}
	return min(r.Hit, n*s.Geometry.BlockTokens/heads)
}

// scoredOfPrefixes is the blocks that prefills score in a layer to select from their prefixes: each
// chunk with one query a head, the mean of its own.
func (s *Server) scoredOfPrefixes(layer int) (n int64) {
	for i := range s.batch.Prefills {
		if seg := &s.batch.Prefills[i]; seg.In(layer) && s.selectsPrefix(seg.Req) {
			n += int64(s.hitBlocks(seg.Req))
		}
	}
	return n
}

// adopts says whether a chunked prefill of the batch has its prefix loaded into the cache while
// the layer before computes.
func (s *Server) adopts() bool {
	if s.Engine.LoadsInTurn {
		return false
	}
	return slices.ContainsFunc(s.batch.Prefills, func(seg sched.Segment) bool {
		return seg.Req.Hit > 0 && seg.TokenFrom == seg.Req.Hit && s.requests[seg.Req].pinned &&
			!s.selectsPrefix(seg.Req)
	})
}

// prefixLoads is the blocks of a layer that prefills load besides what the cache misses: of all KV
// heads the blocks of a prefix for a layer's buffer, or the digests by which it is selected.
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
		case !s.dense(layer):
			n += (blocks*s.Geometry.MetaBytes + s.Geometry.BlockBytes - 1) / s.Geometry.BlockBytes
		}
	}
	return n * int64(s.Geometry.KVHeads)
}

// prefixSet is the HBM for what a prefill selects of its prefix: in all layers, or what must be
// there at once.
func (s *Server) prefixSet(r *sched.Request, all bool) int64 {
	if !s.selectsPrefix(r) {
		return 0
	}
	blocks := s.hitBlocks(r)
	if s.Spec.Selection.DenseLayers == 0 {
		kept := min(blocks, s.Spec.Selection.SinkBlocks)
		blocks = kept + s.policy.AtOnce(blocks-kept)
	}
	need := int64(math.Ceil(float64(blocks)*s.cache.AtOnce())) * s.Geometry.BlockBytes
	if all {
		need = max(need, s.selectedBytes(r.Hit))
	}
	return need
}
