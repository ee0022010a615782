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
	s.saveEntered()
	s.notePrefixes()
	s.metrics.step(&s.step.rec)
	s.steps++
	return s.rec.Step(&s.step.rec)
}

// emit emits one token of a request.
func (s *Server) emit(r *request, now des.Time) error {
	now += s.Engine.Reply
	if r.Generated == 0 {
		r.first = now
	} else {
		r.longest = max(r.longest, now-r.last)
		s.metrics.gap(now - r.last)
		if s.metrics.journal != nil {
			r.gaps = append(r.gaps, now-r.last)
		}
		s.rec.Gap(now - r.last)
	}
	r.last = now
	r.Generated++
	s.metrics.rates.tokens++
	if !r.Finished() {
		s.weigh(r)
		return nil
	}
	s.path.drop(r, true)
	if s.RecordTo != nil {
		if err := s.RecordTo.Finish(r.ID, r.prompt, r.Output); err != nil {
			return err
		}
	}
	s.drop(r)
	s.sched.Finish(r.Request)
	delete(s.requests, r.Request)
	s.load.remove(r.load)
	rec := RequestRecord{
		ID: r.ID, Replica: s.replica, Retries: r.retries, Set: r.arrival.Set, Given: r.arrival.Prompt,
		Prompt: r.prompt, Output: r.Output, Hit: r.hit,
		HitDRAM: r.hitDRAM, HitSSD: r.hitSSD, Arrival: r.arrival.At, Scheduled: r.scheduled,
		FirstToken: r.first, LastToken: r.last, LongestTBT: r.longest,
		Preemptions: r.preemptions,
	}
	if h := &r.recalled; len(h.each) > 0 {
		rec.Recall, rec.Missed2 = h.sum/float64(len(h.each)), h.missed2/float64(len(h.each))
		s.metrics.recalls.add(h)
	}
	s.metrics.completed(&rec)
	s.metrics.remember(&rec, r.gaps, r.recalled)
	r.Request = nil
	s.free = append(s.free, r)
	if err := s.rec.Request(&rec); err != nil {
		return err
	}
	return s.ended(r.arrival, now, false)
}
