package sim

import (
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/sim/sched"
)

// hbmLimit computes the HBM that each candidate request needs. With batch control it uses Algorithm
// 1's working sets, otherwise the minimum that must be resident for the step to run.
type hbmLimit struct{ s *Server }

// Available returns the HBM without metadata, prefill buffers and held blocks. Held blocks are
// open, waiting to be saved, or part of a running chunked prefill.
func (l *hbmLimit) Available() int64 {
	total, reserved := l.s.cache.Bytes()
	return total - reserved - l.s.cache.Held(nil) - l.s.cache.Rounding()
}

// layerOfBlocks returns the size in bytes of one block of every KV head in a layer.
func (c *Config) layerOfBlocks() int64 {
	return int64(c.Geometry.KVHeads) * c.Geometry.BlockBytes
}

// allBlocks returns the HBM in bytes for n blocks of every group.
func (s *Server) allBlocks(n int) int64 {
	return int64(math.Ceil(float64(n*s.Geometry.Groups())*s.cache.Skew())) * s.Geometry.BlockBytes
}

// selectedAtOnce returns the bytes of a decode's selection that must be in HBM at once: one layer,
// or every layer if each has its own pool.
func (s *Server) selectedAtOnce(context int) int64 {
	blocks := s.Geometry.Blocks(context)
	if s.Spec.Sparse() && s.Spec.Selection.DenseLayers == 0 {
		kept := min(blocks, s.Spec.Selection.SinkBlocks+s.Spec.Selection.RecentBlocks)
		blocks = kept + s.sel.policy.AtOnce(blocks-kept)
	}
	return int64(math.Ceil(float64(blocks)*s.cache.AtOnce())) * s.Geometry.BlockBytes
}

// opens returns the bytes that a decode step adds: a new open block in every group, or the metadata
// of the block that it fills.
func (s *Server) opens(context int) int64 {
	switch {
	case (context-1)%s.Geometry.BlockTokens == 0:
		return s.allBlocks(1) + s.metaBytes(context) - s.metaBytes(context-1)
	default:
		return s.metaBytes(context) - s.metaBytes(context-1)
	}
}

// Decode returns a decode's working set without open blocks: the union of the blocks that its last
// w steps selected, or one step's selection before its first step. Without batch control it returns
// the bytes that must be in HBM at once.
func (l *hbmLimit) Decode(sr *sched.Request) int64 {
	s := l.s
	context := sr.Context()
	need := s.selectedAtOnce(context) + s.opens(context)
	if !s.Spec.Offload.BatchControl {
		return need
	}
	set := s.workingSet(s.requests[sr])
	if !s.Spec.Sparse() || s.Spec.Selection.RecentBlocks > 0 {
		set -= s.allBlocks(1) // the open block is counted as held
	}
	return max(need, set+s.opens(context))
}

// workingSet returns the bytes of the blocks that a decode's last steps selected: at least one
// step's selection if known, the budget before the first step. With selection per query head the
// budget is a lower bound, which also covers a newly opened block. PSA and InfiniGen have no lower
// bound: a step may select more than the previous one, and this is not predicted.
func (s *Server) workingSet(r *request) int64 {
	set := s.cache.WorkingSet(r.seq)
	if s.sel.apart {
		set = max(set, s.sel.bytes(r.Context()))
	}
	if s.Spec.Sparse() && !s.sel.fixed && r.steps > 0 {
		dense := int64(s.Geometry.Blocks(r.Context())*min(s.Spec.Selection.DenseLayers,
			s.Model.Layers)) *
			s.layerOfBlocks()
		return max(set, dense+r.selected*s.Geometry.BlockBytes)
	}
	return max(set, s.sel.bytes(r.Context()))
}

// Prefill returns the additional HBM of a prefill: all layers of all chunks so far and the blocks
// granted for the rest, or the buffers of a layer-segmented prefill, which are already reserved
// while it runs.
func (l *hbmLimit) Prefill(seg *sched.Segment) int64 {
	return l.prefill(seg) + l.s.prefixSet(seg.Req, l.s.Spec.Offload.BatchControl)
}

// prefill is Prefill without the selected prefix blocks.
func (l *hbmLimit) prefill(seg *sched.Segment) int64 {
	s := l.s
	r := s.requests[seg.Req]
	meta := s.metaBytes(seg.Req.Target)
	if r.seq != nil {
		meta = 0 // already reserved with the first segment
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

// promptRest returns the HBM granted to a chunked prefill beyond its first tokens. vLLM 0.5 to 0.6,
// and Sarathi based on it, allocate the whole prompt at admission; V1 allocates per chunk. With
// batch control a chunked prefill holds only its previous chunks (SparseServe §3.3).
func (s *Server) promptRest(target, tokens int) int64 {
	if sched.AllocatesByChunk(s.Spec.Scheduler) || s.Spec.Offload.BatchControl {
		return 0
	}
	return s.allBlocks(s.Geometry.Blocks(target) - s.Geometry.Blocks(tokens))
}

// CanRun implements sched.Limit. Metadata, buffers and unsaved blocks of all requests cannot be
// evicted.
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

// metaBytes returns the size of the selection metadata of a context's full blocks.
func (s *Server) metaBytes(tokens int) int64 {
	if !s.Spec.Sparse() {
		return 0
	}
	return int64(tokens/s.Geometry.BlockTokens) * int64(s.Geometry.Groups()) * s.Geometry.MetaBytes
}

// segmentBuffers returns the HBM of a layer-segmented prefill: the KV of the current layer, the KV
// of earlier layers that are still being saved (at most the save buffer), the open block of every
// layer, and fp16 activations of all tokens (hidden state and one layer's queries, which attention
// overwrites). Linears run in slices of max_tokens whose activations are outside the cache. With a
// prefix hit it includes the prefix KV of the current and the next layer, unless the prefix is
// selected from in the cache.
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

// hbmTotal returns the HBM for KV blocks, metadata and prefill buffers.
func (s *Server) hbmTotal() int64 {
	total, _ := s.cache.Bytes()
	return total
}

// peakNeed returns the peak HBM of a request that runs alone: its prefill, possibly a second one
// after a late preemption, or its last decode step.
func (s *Server) peakNeed(prompt, output, hit int) int64 {
	tokens := prompt + output
	prefill := s.allBlocks(s.Geometry.Blocks(tokens))
	if s.sched.Planner().Segmented() {
		prefill = max(s.segmentBuffers(tokens, 0), s.segmentBuffers(tokens, hit))
	}
	// A filled block stays until it is saved, while a new one opens.
	decode := s.selectedAtOnce(tokens) + s.allBlocks(2)
	return s.metaBytes(tokens) + max(prefill, decode) + s.cache.Rounding()
}
