package sim

import "github.com/sparseserve/sparseserve/sim/des"

// Engine is the timing of a serving engine around the scheduler: when a step is planned, and the
// front end's delays for requests and tokens.
type Engine struct {
	// PlanAhead plans a step's batch when the previous step begins. A request that arrives during
	// step n then runs in step n+2 at the earliest.
	PlanAhead bool
	// LoadsInTurn makes a prefill chunk load its prefix like other blocks, without overlap with the
	// previous layer.
	LoadsInTurn bool
	Token       des.Time // of the thread that tokenises, per prompt token
	Request     des.Time // delay from the tokeniser to the scheduler
	Reply       des.Time // delay from the step's end to the client
}

// nextBatch forms the batch of the next step. Requests that arrived during the last step are queued
// after it was formed, unless nothing else can run.
func (s *Server) nextBatch() {
	s.formBatch()
	if s.untried = len(s.arrivedLate) > 0; !s.untried {
		return
	}
	for _, r := range s.arrivedLate {
		s.sched.Add(r)
	}
	s.arrivedLate = s.arrivedLate[:0]
	if s.step.batch.Empty() {
		s.formBatch()
		s.untried = false
	}
}

func (s *Server) formBatch() {
	now := s.Now()
	s.memory.Plan(now)
	s.step.batch = s.sched.Next()
	s.prefixes.saveEntered(now)
	for _, r := range s.step.batch.Preempted {
		preempted := s.requests[r]
		s.Metrics.Preempt(&preempted.record)
		s.drop(preempted, false)
		s.weigh(preempted)
	}
	for _, r := range s.step.batch.Matched {
		s.weigh(s.requests[r])
	}
	for _, r := range s.step.batch.Loading {
		s.prefixes.fetch(now, s.requests[r])
	}
}
