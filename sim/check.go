package sim

import "fmt"

// Check verifies the laws that hold between events: blocks (law 1), HBM (law 2), saved KV (law 3),
// requests and tokens (law 4). Tests call it; builds with the tag lawcheck call it after every
// event.
func (s *Server) Check() error {
	emitted, err := s.checkRequests()
	if err == nil {
		err = s.Metrics.Check(len(s.requests), emitted)
	}
	if err == nil {
		err = s.checkBlocks()
	}
	if err != nil {
		return fmt.Errorf("at %v, step %d: %w", s.Events.Now(), s.steps, err)
	}
	return nil
}

// checkBlocks verifies laws 1 to 3 of one server, alone or in a fleet.
func (s *Server) checkBlocks() error {
	if err := s.prefixes.check(); err != nil {
		return err
	}
	return s.memory.check()
}

// checkRequests verifies law 4 within the server and returns the number of tokens that its requests
// have emitted.
func (s *Server) checkRequests() (emitted int64, err error) {
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
	return emitted, nil
}
