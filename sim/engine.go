package sim

import "github.com/sparseserve/sparseserve/sim/des"

// Engine is a serving engine's timing around the scheduler: when a step is planned, and when
// requests and tokens pass the front end.
type Engine struct {
	// PlanAhead says that a step's batch is planned as the previous step begins, so that a
	// request that arrives during step n runs in step n+2 at the earliest.
	PlanAhead bool
	// LoadsInTurn says that a chunk of a prefill loads its prefix as it loads other blocks, not
	// overlapping the layer before.
	LoadsInTurn bool
	Request     des.Time // from a request's arrival until the scheduler has it
	Reply       des.Time // from a step's end until the client has its tokens
}

// nextBatch forms the batch of the next step. Requests that arrived during the last one are
// queued after it was formed, unless nothing else can run.
func (s *Server) nextBatch() {
	s.formBatch()
	if s.untried = len(s.arrivedLate) > 0; !s.untried {
		return
	}
	for _, r := range s.arrivedLate {
		s.sched.Add(r)
	}
	s.arrivedLate = s.arrivedLate[:0]
	if s.batch.Empty() {
		s.formBatch()
		s.untried = false
	}
}

func (s *Server) formBatch() {
	if s.tiers != nil {
		s.below.Plan(s.events.Now())
	}
	s.batch = s.sched.Next()
	s.saveEntered()
	for _, r := range s.batch.Preempted {
		s.evictRequest(s.requests[r])
	}
	for _, r := range s.batch.Matched {
		s.weigh(s.requests[r])
	}
	s.fetchPrefixes(s.events.Now())
}
