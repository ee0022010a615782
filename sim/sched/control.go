package sched

// Limit estimates the HBM that each candidate of a batch needs. SparseServe's working-set
// control estimates working sets (§3.3). A system without it is still limited by the blocks
// that one layer must hold at once.
type Limit interface {
	// Available is the HBM available to the requests of a batch, in bytes.
	Available() int64
	// Decode and Prefill estimate the HBM that a candidate needs, in bytes.
	Decode(*Request) int64
	Prefill(*Segment) int64
	// CanRun reports whether a step with only this candidate is possible while all other
	// requests, except preempted ones, keep their pinned blocks. The segment is nil for a decode.
	CanRun(r *Request, seg *Segment, preempted []*Request) bool
	// SavesInFlight reports whether saves in flight will free HBM without another step.
	SavesInFlight() bool
}

// control is Algorithm 1 from line 6. Candidates enter the batch in the base policy's order
// while their working sets fit. The others are reset: they keep their places in the queues. The
// first candidate that can run at all enters regardless of its working set, so that a working
// set larger than HBM cannot block the server.
//
// If no candidate can run, running requests are tried without new ones. If that fails too, the
// step waits for saves in flight (an empty batch). If there are none, the youngest running
// requests are preempted until the first candidate can run.
func (s *Scheduler) control() {
	if s.cfg.Limit == nil {
		for i := range s.candidates {
			s.enter(&s.candidates[i])
		}
		return
	}
	if s.admit(); !s.batch.Empty() || len(s.candidates) == 0 {
		return
	}
	if len(s.running) > 0 && s.candidates[0].isNew {
		s.resetAll()
		s.closed = true
		s.base.fill(s)
		s.closed = false
		if s.admit(); !s.batch.Empty() || len(s.candidates) == 0 {
			return
		}
	}
	if s.cfg.Limit.SavesInFlight() {
		s.resetAll()
		return
	}
	first := s.candidates[0]
	s.candidates[0].req = nil // keep it from being reset
	s.resetAll()
	for !s.canRun(&first) && s.preemptOther(first.req) {
	}
	s.enter(&first)
}

// admit adds the candidates that fit to the batch and resets the others. If no candidate fits,
// it changes nothing.
func (s *Scheduler) admit() {
	var used int64
	available := s.cfg.Limit.Available()
	back := s.rest[:0]
	for i := range s.candidates {
		c := &s.candidates[i]
		need := s.need(c)
		s.held = s.held || used+need > available
		if used+need <= available || s.batch.Empty() && s.canRun(c) {
			used += need
			s.enter(c)
			continue
		}
		back = append(back, *c)
	}
	s.rest = back
	if !s.batch.Empty() {
		s.candidates, s.rest = back, s.candidates
		s.resetAll()
	}
}

func (s *Scheduler) enter(c *candidate) {
	if c.decode() {
		s.batch.Decodes = append(s.batch.Decodes, c.req)
	} else {
		s.batch.Prefills = append(s.batch.Prefills, c.seg)
	}
}

func (s *Scheduler) need(c *candidate) int64 {
	if c.decode() {
		return s.cfg.Limit.Decode(c.req)
	}
	return s.cfg.Limit.Prefill(&c.seg)
}

func (s *Scheduler) canRun(c *candidate) bool {
	if c.decode() {
		return s.cfg.Limit.CanRun(c.req, nil, s.batch.Preempted)
	}
	return s.cfg.Limit.CanRun(c.req, &c.seg, s.batch.Preempted)
}

// resetAll resets all candidates. A request admitted for this batch returns to the front of the
// waiting queue, in order. A running request skips the iteration.
func (s *Scheduler) resetAll() {
	for i := len(s.candidates) - 1; i >= 0; i-- {
		c := &s.candidates[i]
		switch {
		case c.req == nil:
		case c.isNew:
			s.unrun(c.req)
			s.cfg.Memory.Release(c.req.Grant, false)
			s.wait(c.req)
		default:
			s.batch.SetBack = append(s.batch.SetBack, c.req)
		}
	}
	s.candidates = s.candidates[:0]
}

// preemptOther preempts the last running request other than r; it reports whether there was
// one.
func (s *Scheduler) preemptOther(r *Request) bool {
	for i := len(s.running) - 1; i >= 0; i-- {
		if s.running[i] != r {
			s.preempt(i)
			return true
		}
	}
	return false
}
