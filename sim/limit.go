package sim

import (
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/sim/sched"
)

// hbmLimit is what each candidate needs of the HBM cache. With working-set control these are
// Algorithm 1's estimates; without it, what must be in HBM at once for the step to be possible.
type hbmLimit struct{ s *Server }

// Available is the HBM without metadata, prefill buffers and held blocks: those open, waiting
// to be saved, or of a running chunked prefill.
func (l *hbmLimit) Available() int64 {
	total, reserved := l.s.cache.Bytes()
	return total - reserved - l.s.cache.Held(nil) - l.s.cache.Rounding()
}

// layerOfBlocks is the bytes of one block of every KV head of one layer.
func (s *Server) layerOfBlocks() int64 {
	return int64(s.Geometry.KVHeads) * s.Geometry.BlockBytes
}

// allBlocks is the HBM for n blocks of every group.
func (s *Server) allBlocks(n int) int64 {
	return int64(math.Ceil(float64(n*s.Geometry.Groups())*s.cache.Skew())) * s.Geometry.BlockBytes
}

// selectedAtOnce is the part of a decode's selection that must be in HBM at once: one layer, or
// every layer where each has its own pool.
func (s *Server) selectedAtOnce(context int) int64 {
	blocks := s.Geometry.Blocks(context)
	if s.Spec.Sparse() && s.Spec.Selection.DenseLayers == 0 {
		kept := min(blocks, s.Spec.Selection.SinkBlocks+s.Spec.Selection.RecentBlocks)
		blocks = kept + s.policy.AtOnce(blocks-kept)
	}
	return int64(math.Ceil(float64(blocks)*s.cache.AtOnce())) * s.Geometry.BlockBytes
}

// opens is what a decode step adds: a new open block in every group, or the metadata of the
// block that it fills.
func (s *Server) opens(context int) int64 {
	switch {
	case (context-1)%s.Geometry.BlockTokens == 0:
		return s.allBlocks(1) + s.metaBytes(context) - s.metaBytes(context-1)
	default:
		return s.metaBytes(context) - s.metaBytes(context-1)
	}
}

// Decode returns a decode's working set without the open blocks: the union of the blocks that
// its last w steps selected, or one step's selection before its first step. Without batch
// control it is what must be in HBM at once.
func (l *hbmLimit) Decode(sr *sched.Request) int64 {
	s := l.s
	context := sr.Context()
	need := s.selectedAtOnce(context) + s.opens(context)
	if !s.Spec.Offload.BatchControl {
		return need
	}
	set := s.workingSet(s.requests[sr])
	if !s.Spec.Sparse() || s.Spec.Selection.RecentBlocks > 0 {
		set -= s.allBlocks(1) // the open block, which is held
	}
	return max(need, set+s.opens(context))
}

// workingSet is the union of the blocks that a decode's last steps selected, at least one
// step's where known; the budget before the first step. Query heads that select apart select the
// budget at the least, and so a block that opens where there are no more. PSA and InfiniGen have no
// least: a step of theirs may select more than the last one, which nothing foresees.
func (s *Server) workingSet(r *request) int64 {
	set := s.cache.WorkingSet(r.seq)
	if s.apart {
		set = max(set, s.selectedBytes(r.Context()))
	}
	if s.Spec.Sparse() && !s.fixed && r.steps > 0 {
		dense := int64(s.Geometry.Blocks(r.Context())*min(s.Spec.Selection.DenseLayers,
			s.Model.Layers)) *
			s.layerOfBlocks()
		return max(set, dense+r.selected*s.Geometry.BlockBytes)
	}
	return max(set, s.selectedBytes(r.Context()))
}

// Prefill returns what a prefill holds: all layers of all chunks so far and the blocks granted
// for the rest, or the buffers of a layer-segmented one, which are already reserved while it
// runs.
func (l *hbmLimit) Prefill(seg *sched.Segment) int64 {
	return l.prefill(seg) + l.s.prefixSet(seg.Req, l.s.Spec.Offload.BatchControl)
}

// prefill is Prefill without what it selects of a prefix.
func (l *hbmLimit) prefill(seg *sched.Segment) int64 {
	s := l.s
	r := s.requests[seg.Req]
	meta := s.metaBytes(seg.Req.Target)
	if r.seq != nil {
		meta = 0 // reserved with the first segment, as the buffers
	}
	if s.sched.Planner().Segmented() {
		if r.seq != nil {
			return 0
		}
		return s.segmentBuffers(seg.Req.Target, seg.Req.Hit) + meta
	}
	held, granted := int64(0), int64(0)
	if r.seq != nil {
		held, granted = s.cache.Held(r.seq), s.promptRest(seg.Req.Target, seg.TokenFrom)
	}
	return s.allBlocks(s.Geometry.Blocks(seg.TokenTo)-s.looseBlocks(seg.Req)) - held +
		s.promptRest(seg.Req.Target, seg.TokenTo) - granted + meta
}

// promptRest is the HBM granted to a chunked prefill beyond its first tokens. vLLM 0.5 to 0.6,
// and Sarathi on it, allocate a whole prompt at admission; V1 allocates chunk by chunk; with
// batch control a chunked prefill has its preceding chunks (SparseServe §3.3).
func (s *Server) promptRest(target, tokens int) int64 {
	if sched.AllocatesByChunk(s.Spec.Scheduler) || s.Spec.Offload.BatchControl {
		return 0
	}
	return s.allBlocks(s.Geometry.Blocks(target) - s.Geometry.Blocks(tokens))
}

// CanRun implements sched.Limit: what must not be evicted is the metadata, buffers and unsaved
// blocks of every request.
func (l *hbmLimit) CanRun(sr *sched.Request, seg *sched.Segment, preempted []*sched.Request) bool {
	s := l.s
	total, reserved := s.cache.Bytes()
	free := total - reserved - s.cache.Rounding()
	for _, r := range s.requests {
		switch {
		case r.seq == nil:
		case slices.Contains(preempted, r.Request):
			free += r.seq.Reserved()
		case seg != nil && r.Request == sr:
		default:
			_, saved := r.seq.Full()
			free -= s.allBlocks(r.seq.Blocks() - saved)
		}
	}
	if seg == nil {
		return s.selectedAtOnce(sr.Context())+s.opens(sr.Context()) <= free
	}
	need := l.prefill(seg) + s.prefixSet(sr, false)
	if r := s.requests[sr]; r.seq != nil {
		need += s.cache.Held(r.seq)
	}
	return need <= free
}

// SavesInFlight implements sched.Limit.
func (l *hbmLimit) SavesInFlight() bool { return len(l.s.saves) > 0 }

// metaBytes is the selection metadata of the full blocks of a context.
func (s *Server) metaBytes(tokens int) int64 {
	if !s.Spec.Sparse() {
		return 0
	}
	return int64(tokens/s.Geometry.BlockTokens) * int64(s.Geometry.Groups()) * s.Geometry.MetaBytes
}

// segmentBuffers is the HBM of a layer-segmented prefill of the given tokens: the KV of the
// layer being computed, that of earlier layers still being saved (at most the save buffer), the
// open block of every layer, and fp16 activations of all tokens (hidden state and one layer's
// queries, which attention overwrites). Linears run in slices of max_tokens whose activations
// are outside the cache. Of a prefix that was hit the layer's KV is there, and that of the next
// layer, unless the cache has what is selected of it.
func (s *Server) segmentBuffers(tokens, hit int) int64 {
	prefix := int64(hit/s.Geometry.BlockTokens) * s.layerOfBlocks()
	layer := int64(s.Geometry.Blocks(tokens))*s.layerOfBlocks() - prefix
	queued := min(int64(s.Spec.Offload.SaveBufferMiB*(1<<20)), layer*int64(s.Model.Layers))
	if s.Spec.PrefixCache.Attend == PrefixSelected {
		prefix = 0
	}
	return layer + max(queued, layer) + 2*prefix + s.allBlocks(1) +
		int64(tokens-hit)*int64(s.Model.TokenValues)*2
}

// hbmTotal is the HBM for KV blocks, metadata and prefill buffers.
func (s *Server) hbmTotal() int64 {
	total, _ := s.cache.Bytes()
	return total
}

// peakNeed is the peak HBM of a request that runs by itself: its prefill, possibly a second one
// after a preemption near its end, or its last decode step.
func (s *Server) peakNeed(prompt, output, hit int) int64 {
	tokens := prompt + output
	prefill := s.allBlocks(s.Geometry.Blocks(tokens))
	if s.sched.Planner().Segmented() {
		prefill = max(s.segmentBuffers(tokens, 0), s.segmentBuffers(tokens, hit))
	}
	// A block that was filled stays until it is saved; a new one opens.
	decode := s.selectedAtOnce(tokens) + s.allBlocks(2)
	return s.metaBytes(tokens) + max(prefill, decode) + s.cache.Rounding()
}
