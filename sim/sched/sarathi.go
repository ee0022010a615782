package sched

// sarathi fills a batch in Sarathi-Serve's order: all decodes, then unfinished prefills, then
// new requests, under one token budget (Sarathi-Serve, OSDI'24, Algorithm 3). Admission and
// preemption are the same as vLLM's.
func (s *Scheduler) sarathi() {
	b := s.budget()
	for i := 0; i < len(s.running) && b.Tokens > s.cfg.Drafts; i++ {
		if r := s.running[i]; r.Decoding() {
			s.decode(r, &b)
		}
	}
	for _, r := range s.running {
		if !r.Decoding() {
			s.prefill(r, &b)
		}
	}
	s.admitWaiting(&b)
}
