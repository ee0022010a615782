package sim

import "sparseserve/sim/sched"

// hbmLimit tells the scheduler what each candidate needs of the HBM cache.
// With working-set control these are Algorithm 1's estimates; without it, what
// must be in HBM at once for the step to be possible at all.
type hbmLimit struct{ s *Server }

// Available is the HBM that metadata, prefill buffers and held blocks leave: a
// block is held while it is open, waits to be saved or belongs to a running
// chunked prefill.
func (l *hbmLimit) Available() int64 {
	total, reserved := l.s.cache.Bytes()
	return total - reserved - l.s.cache.Held(nil)
}

// layerOfBlocks is the bytes of one block of every KV head of one layer.
func (s *Server) layerOfBlocks() int64 {
	return int64(s.Geometry.KVHeads) * s.Geometry.BlockBytes
}

// Decode returns the working set of a decode: the union of the blocks that its
// last w steps selected, and before its first step one step's selection; less
// the open blocks. Without batch control it is one layer's selection.
func (l *hbmLimit) Decode(sr *sched.Request) int64 {
	s := l.s
	r := s.requests[sr]
	blocks := s.Geometry.Blocks(sr.Context())
	if s.Spec.Sparse() && s.Spec.DenseLayers == 0 {
		blocks = min(blocks, s.budget)
	}
	all := int64(s.Geometry.Layers)
	layer := int64(blocks) * s.layerOfBlocks()
	opens := int64(0) // a new open block, and metadata of the one that closed
	if (sr.Context()-1)%s.Geometry.BlockTokens == 0 {
		opens = all*s.layerOfBlocks() + int64(s.Geometry.Groups())*s.Geometry.MetaBytes
	}
	if !s.Spec.BatchControl {
		return layer + opens
	}
	need := max(layer*all, s.cache.WorkingSet(r.seq))
	return need - all*s.layerOfBlocks() + opens
}

// Prefill returns what a prefill holds: all layers of all chunks so far, or the
// buffers of a layer-segmented one, which are reserved already once it runs.
func (l *hbmLimit) Prefill(seg *sched.Segment) int64 {
	s := l.s
	r := s.requests[seg.Req]
	meta := s.metaBytes(seg.Req.Target)
	if r.seq != nil && r.buffers > 0 {
		return 0
	}
	if s.sched.Planner().Segmented() {
		return s.segmentBuffers(seg.Req.Target) + meta
	}
	var held int64
	if r.seq != nil {
		held = s.cache.Held(r.seq)
		meta = 0 // reserved with the first chunk
	}
	return int64(s.Geometry.Blocks(seg.TokenTo))*s.layerOfBlocks()*int64(s.Model.Layers) - held + meta
}

// metaBytes is the selection metadata of the full blocks of a context.
func (s *Server) metaBytes(tokens int) int64 {
	if !s.Spec.Sparse() {
		return 0
	}
	return int64(tokens/s.Geometry.BlockTokens) * int64(s.Geometry.Groups()) * s.Geometry.MetaBytes
}

// segmentBuffers is what a layer-segmented prefill of the given tokens holds in
// HBM: the KV of the layer being computed and of the one being saved beside it,
// and the activations that carry it from one iteration to the next, fp16.
func (s *Server) segmentBuffers(tokens int) int64 {
	layer := int64(s.Geometry.Blocks(tokens)) * s.layerOfBlocks()
	return 2*layer + int64(tokens)*int64(s.Model.Hidden)*2
}

// hbmTotal is the HBM for KV blocks, metadata and prefill buffers.
func (s *Server) hbmTotal() int64 {
	total, _ := s.cache.Bytes()
	return total
}

// loneNeed is the HBM that a request needs at its worst moment when it is the
// only one: its prefill, or its last decode step.
func (s *Server) loneNeed(prompt, output int) int64 {
	tokens := prompt + output
	meta := s.metaBytes(tokens)
	open := 2 * s.layerOfBlocks() * int64(s.Geometry.Layers)
	prefill := int64(s.Geometry.Blocks(tokens)) * s.layerOfBlocks() * int64(s.Geometry.Layers)
	if s.sched.Planner().Segmented() {
		prefill = s.segmentBuffers(tokens) + open
	}
	blocks := s.Geometry.Blocks(tokens)
	if s.Spec.Sparse() && s.Spec.DenseLayers == 0 {
		blocks = min(blocks, s.budget)
	}
	layers := int64(1) // of selections that must be in HBM at once
	if s.Spec.Pool == "per-layer" {
		layers = int64(s.Model.Layers)
	}
	decode := open + layers*int64(blocks)*s.layerOfBlocks()
	return meta + max(prefill, decode)
}
