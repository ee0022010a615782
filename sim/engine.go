package sim

import "sparseserve/sim/des"

// Engine is what of a serving engine decides when a request is planned and when its tokens are
// seen, beside the scheduler's rules.
type Engine struct {
	// PlanAhead says that a step's batch is planned as the step before begins. A request that
	// arrives while step n runs is then in step n+2 at the earliest, as n+1 is already on its
	// way to the device.
	PlanAhead bool
	Request   des.Time // from a request's arrival until the scheduler has it
	Reply     des.Time // from a step's end until the client has its tokens
}

// nextBatch forms the batch of the next step. Requests that came while the last one ran are
// queued after it was formed, unless nothing else is there to run.
func (s *Server) nextBatch() {
	s.formBatch()
	if len(s.arrivedLate) == 0 {
		return
	}
	for _, r := range s.arrivedLate {
		s.sched.Add(r)
	}
	s.arrivedLate = s.arrivedLate[:0]
	if s.batch.Empty() {
		s.formBatch()
	}
}

func (s *Server) formBatch() {
	s.batch = s.sched.Next()
	for _, r := range s.batch.Preempted {
		s.evictRequest(s.requests[r])
	}
}
