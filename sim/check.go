package sim

import "fmt"

// Check verifies the laws that hold between events: blocks (law 1), HBM (law 2), saved KV (law 3),
// requests and tokens (law 4). Tests call it; builds with the tag lawcheck call it after every
// event.
func (s *Server) Check() error {
	emitted, err := s.checkServer()
	if err == nil {
		err = s.Metrics.Check(len(s.requests), emitted)
	}
	if err != nil {
		return fmt.Errorf("at %v, step %d: %w", s.Events.Now(), s.steps, err)
	}
	return nil
}

// checkServer verifies the laws of one server, alone or in a fleet, and returns the number of
// tokens that its requests have emitted.
func (s *Server) checkServer() (emitted int64, err error) {
	if w, r := s.sched.Waiting()+len(s.arrivedLate), s.sched.Running(); w+r != len(s.requests) {
		return 0, fmt.Errorf("law 4: %d requests in flight, %d waiting + %d running",
			len(s.requests), w, r)
	}
	for _, r := range s.requests {
		emitted += int64(r.Generated)
		if r.Generated > r.Output {
			return 0, fmt.Errorf("law 4: request %d emitted %d of %d tokens", r.ID, r.Generated, r.Output)
		}
	}
	return emitted, s.memory.check()
}
