package sim

import (
	"fmt"

	"github.com/sparseserve/sparseserve/sim/des"
)

// commit ends a step: it advances prefills, emits tokens and finishes requests.
func (s *Server) commit(now des.Time) error {
	s.busy = false
	planner := s.sched.Planner()
	for i := range s.step.batch.Prefills {
		seg := &s.step.batch.Prefills[i]
		r := s.requests[seg.Req]
		planner.Commit(seg)
		r.prefilled += int64(seg.Tokens()) * int64(seg.LayerTo-seg.LayerFrom)
		if !r.Decoding() {
			s.weigh(r)
			continue
		}
		if want := int64(r.Target-r.Hit) * int64(s.Model.Layers); r.prefilled != want {
			panic(fmt.Sprintf("sim: law 4: request %d prefilled %d token-layers of %d", r.ID,
				r.prefilled, want))
		}
		r.prefilled = 0
		if err := s.memory.prefilled(r); err != nil {
			return err
		}
		if err := s.emit(r, now); err != nil {
			return err
		}
	}
	for _, r := range s.step.decodes {
		for range r.gives {
			if err := s.emit(r, now); err != nil {
				return err
			}
		}
	}
	return s.recordStep()
}

// recordStep records the ended step.
func (s *Server) recordStep() error {
	s.prefixes.saveEntered(s.Now())
	s.step.rec.Prefix = s.prefixes.use(&s.step.meta.Prefix)
	s.Metrics.Step(&s.step.rec)
	s.steps++
	return s.rec.Step(&s.step.rec)
}

// emit emits one token of a request.
func (s *Server) emit(r *request, now des.Time) error {
	now += s.Engine.Reply
	rec := &r.record
	if gap := s.Metrics.Emit(rec, r.Generated == 0, now); r.Generated > 0 {
		s.rec.Gap(gap)
	}
	r.Generated++
	if !r.Finished() {
		s.weigh(r)
		return nil
	}
	if s.RecordTo != nil {
		if err := s.RecordTo.Finish(r.ID, r.Prompt, r.Output); err != nil {
			return err
		}
	}
	s.drop(r, true)
	s.sched.Finish(r.Request)
	delete(s.requests, r.Request)
	s.place.load.remove(r.load)
	rec.Replica = s.place.Replica
	s.Metrics.Complete(rec)
	r.Request = nil
	s.free = append(s.free, r)
	if err := s.rec.Request(&rec.Request); err != nil {
		return err
	}
	return s.ended(r.arrival, now, false)
}
