package sched

// Limit says how much HBM each candidate of a batch needs. SparseServe's
// working-set control estimates working sets (§3.3); a system without it is
// still limited by what one layer must hold at once.
type Limit interface {
	// Available is the HBM in bytes for the requests of a batch.
	Available() int64
	// Decode and Prefill estimate what a candidate needs of it, in bytes.
	Decode(*Request) int64
	Prefill(*Segment) int64
}

// thin is Algorithm 1 from line 6: candidates enter the batch in the base
// policy's order while their working sets fit; the others are reset, that is
// keep their place in the queues as if they had not been picked. The first
// candidate always enters, so that a request larger than the estimate cannot
// stop the server.
func (s *Scheduler) thin() {
	var used, available int64
	if s.cfg.Limit != nil {
		available = s.cfg.Limit.Available()
	}
	back := 0
	for i := range s.candidates {
		c := &s.candidates[i]
		decode := c.seg.Req == nil
		if s.cfg.Limit != nil {
			var need int64
			if decode {
				need = s.cfg.Limit.Decode(c.req)
			} else {
				need = s.cfg.Limit.Prefill(&c.seg)
			}
			if used+need > available && !s.batch.Empty() {
				s.candidates[back] = *c
				back++
				continue
			}
			used += need
		}
		if decode {
			s.batch.Decodes = append(s.batch.Decodes, c.req)
		} else {
			s.batch.Prefills = append(s.batch.Prefills, c.seg)
		}
	}
	for i := back - 1; i >= 0; i-- {
		s.reset(&s.candidates[i])
	}
}

// reset takes a candidate back. A request that was admitted for this batch
// waits again, at the front and in order; a running one stays in the running
// queue and only skips the iteration.
func (s *Scheduler) reset(c *candidate) {
	if !c.isNew {
		s.batch.SetBack = append(s.batch.SetBack, c.req)
		return
	}
	s.unrun(c.req)
	s.cfg.Memory.Release(&c.req.Grant)
	s.waiting.pushFront(c.req)
}
