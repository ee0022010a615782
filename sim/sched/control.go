package sched

// Limit is the HBM that each candidate of a batch needs. SparseServe's working-set control
// estimates working sets (§3.3); a system without it is still limited by what one layer must
// hold at once.
type Limit interface {
	// Available is the HBM in bytes for the requests of a batch.
	Available() int64
	// Decode and Prefill estimate what a candidate needs of it, in bytes.
	Decode(*Request) int64
	Prefill(*Segment) int64
	// CanRun says whether a step of this candidate only is possible while all other requests,
	// except preempted ones, keep what must not be evicted. The segment is nil for a decode.
	CanRun(r *Request, seg *Segment, preempted []*Request) bool
	// SavesInFlight says that saves in flight will free HBM without any step.
	SavesInFlight() bool
}

// control is Algorithm 1 from line 6: candidates enter the batch in the base policy's order while
// their working sets fit; the others are reset, that is keep their places in the queues. The
// first that can run at all enters whatever its working set, so that one larger than HBM cannot
// block the server.
//
// When none can run, running requests go before new ones, then the step waits for saves in
// flight (an empty batch), and at last the youngest running requests are preempted until the
// first candidate can run.
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
	s.candidates[0].req = nil // stays
	s.resetAll()
	for !s.canRun(&first) && s.preemptOther(first.req) {
	}
	s.enter(&first)
}

// admit moves the candidates that fit into the batch and resets the others; if none fits it
// changes nothing.
func (s *Scheduler) admit() {
	var used int64
	available := s.cfg.Limit.Available()
	back := s.rest[:0]
	for i := range s.candidates {
		c := &s.candidates[i]
		need := s.need(c)
		s.held = s.held || used+need > available
		s.limited = s.limited || s.held
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

// resetAll resets all candidates. A request admitted for this batch waits again, at the front
// and in order; a running one skips the iteration.
func (s *Scheduler) resetAll() {
	for i := len(s.candidates) - 1; i >= 0; i-- {
		c := &s.candidates[i]
		switch {
		case c.req == nil:
		case c.isNew:
			s.unrun(c.req)
			s.cfg.Memory.Release(&c.req.Grant, false)
			s.waiting.pushFront(c.req)
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
