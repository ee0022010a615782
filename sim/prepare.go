package sim

import (
	"slices"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/sched"
)

// evictRequest drops the KV of a preempted request.
func (s *Server) evictRequest(r *request) {
	r.preemptions++
	s.metrics.preemptions++
	s.path.drop(r, false)
	s.closeSeq(r)
	s.weigh(r)
}

func (s *Server) closeSeq(r *request) {
	if r.seq != nil {
		s.step.freed += int64(r.seq.Blocks()) * int64(s.Geometry.Groups())
		s.cache.Free(r.seq)
	}
	r.seq, r.pinned, r.buffers, r.steps, r.selected, r.prefilled = nil, false, 0, 0, 0, 0
	r.filled = 0
}

// prepareStep brings the batch's requests into the cache and computes the step's totals.
func (s *Server) prepareStep(now des.Time) error {
	st := &s.step
	st.decodes, st.seqs = st.decodes[:0], st.seqs[:0]
	st.bounded, st.reread, st.emits = 0, 0, 0
	st.contexts, st.selected, st.scored = 0, 0, 0
	st.closing, st.savesInFlight = 0, false
	st.loaded, st.begun, st.evictions, st.joined = share{}, share{}, share{}, share{}
	st.meta = Step{Index: s.steps, Start: now, Requests: len(s.batch.Decodes) + len(s.batch.Prefills),
		FreedBlocks: st.freed}
	st.freed = 0
	st.rec = StepRecord{Index: s.steps, Replica: s.replica, Start: now, Decodes: len(s.batch.Decodes),
		Prefills: len(s.batch.Prefills), Waiting: s.sched.Waiting()}
	s.unpinAbsent()
	if s.hot != nil {
		s.hot.loaded, s.hot.given, s.hot.selections, s.hot.swapped = 0, 0, 0, 0
		s.hot.longest = 0
	}
	for i := range s.batch.Prefills {
		if err := s.preparePrefill(&s.batch.Prefills[i], now); err != nil {
			return err
		}
	}
	for _, sr := range s.batch.Decodes {
		if err := s.prepareDecode(s.requests[sr]); err != nil {
			return err
		}
	}
	if s.prefixes != nil {
		st.reread = s.prefixes.Reread() * int64(s.Geometry.BlockTokens)
	}
	if s.Spec.Offload.On {
		st.meta.DRAMBytes = s.memory.Used() * s.Geometry.BlockBytes * int64(s.Geometry.Groups())
	}
	if s.cache != nil {
		st.runs, st.ran = s.layersRun(), 0
		s.cache.BeginStep(st.seqs)
		st.before = s.cache.Stats()
	}
	return nil
}

// layersRun returns the number of layers that the batch runs.
func (s *Server) layersRun() (n int) {
	if len(s.batch.Decodes) > 0 || !s.sched.Planner().Segmented() {
		return s.Model.Layers
	}
	for layer := range s.Model.Layers {
		in := func(seg sched.Segment) bool { return seg.In(layer) }
		if slices.ContainsFunc(s.batch.Prefills, in) {
			n++
		}
	}
	return n
}

// unpinAbsent lets the cache evict the KV of chunked prefills that are not in this batch. Evicted
// blocks are loaded again when the prefill continues.
func (s *Server) unpinAbsent() {
	kept := s.pinned[:0]
	for _, r := range s.pinned {
		if !r.pinned {
			continue // already completed or preempted
		}
		if r.Request != nil && s.batch.HasPrefill(r.Request) {
			kept = append(kept, r)
			continue
		}
		s.cache.Unpin(r.seq)
		r.pinned = false
	}
	s.pinned = kept
}

func (s *Server) preparePrefill(seg *sched.Segment, now des.Time) error {
	r := s.requests[seg.Req]
	if seg.TokenFrom == r.Hit && seg.LayerFrom == 0 {
		s.begun(r, !r.started)
	}
	if !r.started {
		r.started, r.scheduled = true, now
		s.metrics.scheduled(now - r.arrival.At)
	}
	layers := int64(seg.LayerTo - seg.LayerFrom)
	s.step.rec.PrefillTokenLayers += int64(seg.Tokens()) * layers
	s.step.rec.Recomputed += int64(max(0, min(seg.TokenTo, r.Lost)-seg.TokenFrom)) * layers
	if seg.Completes(s.Model.Layers) {
		s.step.meta.Sampled++
		s.step.emits++
	}
	if s.cache == nil {
		return nil
	}
	if r.seq == nil {
		s.openSeq(r)
		if s.sched.Planner().Segmented() {
			r.buffers = s.segmentBuffers(r.Target, r.Hit)
		}
		if err := s.cache.Reserve(r.seq, s.metaBytes(r.Target)+r.buffers); err != nil {
			return err
		}
	}
	if !s.sched.Planner().Segmented() {
		if err := s.cache.Reserve(r.seq, s.metaBytes(r.Target)+
			s.promptRest(r.Target, seg.TokenTo)); err != nil {
			return err
		}
		s.cache.Extend(r.seq, seg.TokenTo)
		s.cache.Pin(r.seq, s.looseBlocks(seg.Req))
		if !r.pinned {
			r.pinned = true
			s.pinned = append(s.pinned, r)
		}
	}
	if s.selectsPrefix(seg.Req) {
		return s.selectPrefix(r)
	}
	return nil
}

func (s *Server) prepareDecode(r *request) error {
	st := &s.step
	st.decodes = append(st.decodes, r)
	st.meta.Sampled += 1 + s.Spec.Speculation.Tokens
	r.gives = s.accepted(r)
	st.emits += r.gives
	context := r.Context() + s.Spec.Speculation.Tokens
	st.contexts += int64(context)
	if s.prefixes != nil {
		s.prefixes.Read(&r.table)
	}
	st.bounded += int64(min(context, s.Model.BoundTokens))
	if s.Spec.Sparse() {
		if s.sel.fixed {
			st.selected += s.sel.tokens(context)
		}
		st.scored += int64(context / s.Geometry.BlockTokens)
	}
	if s.sel.named {
		if err := s.sel.advance(r); err != nil {
			return err
		}
	}
	switch {
	case s.hot == nil:
	case s.Swapped != nil:
		s.hot.swapped++
	default:
		s.chooseHot(r)
	}
	closes := context%s.Geometry.BlockTokens == 0
	if closes {
		st.closing++
	}
	if s.cache == nil {
		return nil
	}
	// buffers stay until the prefill's saves are in DRAM
	st.savesInFlight = st.savesInFlight || r.buffers > 0
	st.seqs = append(st.seqs, r.seq)
	s.cache.Extend(r.seq, context)
	if closes {
		if err := s.cache.Reserve(r.seq, s.metaBytes(context)+r.buffers); err != nil {
			return err
		}
	}
	return nil
}
