package sim

import "fmt"

// check verifies the laws that hold between any two events: blocks and HBM
// (laws 1 to 3, in the cache), requests and tokens (law 4). Tests call it, and
// builds with the tag lawcheck after every event.
func (s *Server) check() error {
	if err := s.metrics.check(len(s.requests)); err != nil {
		return err
	}
	if w, r := s.sched.Waiting(), s.sched.Running(); w+r != len(s.requests) {
		return fmt.Errorf("law 4: %d requests in flight, %d waiting + %d running", len(s.requests), w, r)
	}
	var emitted int64
	for _, r := range s.requests {
		emitted += int64(r.Generated)
		if r.Generated > r.Output {
			return fmt.Errorf("law 4: request %d emitted %d of %d tokens", r.ID, r.Generated, r.Output)
		}
	}
	if emitted += s.metrics.finishedTokens; emitted != s.metrics.emitted {
		return fmt.Errorf("law 4: %d tokens emitted, requests count %d", s.metrics.emitted, emitted)
	}
	if used, total := s.memory.Used(), s.memory.Total(); used < 0 || used > total {
		return fmt.Errorf("law 1: %d blocks used of %d", used, total)
	}
	if s.cache == nil {
		return nil
	}
	return s.cache.Check()
}
