package sim

import (
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/sim/sched"
)

// drop drops the KV of a request that is preempted, or finished.
func (s *Server) drop(r *request, finished bool) {
	s.path.drop(r, finished)
	s.memory.drop(r)
	r.steps, r.selected, r.prefilled, r.gives = 0, 0, 0, 0
}

// prepareStep brings the batch's requests into the cache and computes the step's totals.
func (s *Server) prepareStep(now des.Time) error {
	st, b := &s.step, s.step.batch
	st.decodes, st.prefills, st.totals = st.decodes[:0], st.prefills[:0], totals{}
	st.meta = Step{Index: s.steps, Start: now, Requests: len(b.Decodes) + len(b.Prefills)}
	st.rec = metrics.Step{Index: s.steps, Replica: s.place.Replica, Start: now,
		Decodes:  len(b.Decodes),
		Prefills: len(b.Prefills), Waiting: s.sched.Waiting()}
	for i := range b.Prefills {
		s.preparePrefill(&s.step.batch.Prefills[i], now)
	}
	for _, sr := range b.Decodes {
		if err := s.prepareDecode(s.requests[sr]); err != nil {
			return err
		}
	}
	st.reread = s.memory.Reread()
	return s.memory.begin()
}

func (s *Server) preparePrefill(seg *sched.Segment, now des.Time) {
	r := s.requests[seg.Req]
	s.step.prefills = append(s.step.prefills, r)
	if seg.TokenFrom == r.Hit && seg.LayerFrom == 0 {
		s.prefixes.begin(r, !r.record.Started, &s.step.meta.Prefix)
		s.weigh(r)
	}
	if !r.record.Started {
		s.Metrics.Schedule(&r.record, now)
	}
	layers := int64(seg.LayerTo - seg.LayerFrom)
	s.step.rec.PrefillTokenLayers += int64(seg.Tokens()) * layers
	s.step.rec.Recomputed += int64(max(0, min(seg.TokenTo, r.Lost)-seg.TokenFrom)) * layers
	if seg.Completes(s.Model.Layers) {
		s.step.meta.Sampled++
		s.step.emits++
	}
}

func (s *Server) prepareDecode(r *request) error {
	st := &s.step
	st.decodes = append(st.decodes, r)
	st.meta.Sampled += 1 + s.Spec.Speculation.Tokens
	r.moved, r.gives = max(1, r.gives), s.accepted(r)
	st.emits += r.gives
	st.add(s.sel, r.Context()+s.Spec.Speculation.Tokens)
	s.memory.Read(r.Grant)
	if s.sel.named {
		if err := s.sel.advance(r); err != nil {
			return err
		}
	}
	before, size := r.Context()-1, s.Geometry.BlockTokens
	st.closing += (before+r.gives)/size - before/size
	return nil
}
