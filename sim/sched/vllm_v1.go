package sched

// vllmV1 fills a batch like vLLM V1. Running requests come first in queue order, prefills and
// decodes alike. Waiting requests join if no request was preempted in this iteration. Blocks
// are allocated chunk by chunk, without a watermark. A request that finds no free block
// preempts the last running request.
//
// Base vllm-v1 admits a waiting request if its first chunk gets blocks. Base vllm-v1-whole
// admits it only if free blocks hold all its tokens, as vLLM 0.19 and later do by default
// (scheduler_reserve_full_isl, pull request 37307). This is only a check, not a reservation:
// two concurrent prefills can still run out of blocks and preempt.
func (s *Scheduler) vllmV1() {
	b := s.budget()
	for i := 0; i < len(s.running); i++ {
		if r := s.running[i]; r.Decoding() {
			s.decode(r, &b)
		} else {
			s.prefill(r, &b)
		}
	}
	// If a request runs alone and finds no memory, free the prefixes that waiting requests
	// loaded.
	if len(s.batch.Preempted) > 0 && !s.reclaim() {
		return
	}
	for s.admitWaiting(&b); s.reclaim(); s.admitWaiting(&b) {
	}
}

// admitByChunk moves waiting requests to the running queue, chunk by chunk. A request whose cached
// prefix is below HBM loads it first; other requests run meanwhile.
func (s *Scheduler) admitByChunk(b Budget) {
	for !s.closed && len(s.waiting) > 0 && len(s.running) < s.cfg.MaxRequests {
		r := s.waiting[0]
		before, left := s.match(r), b
		if !s.hasRoom(r) {
			r.StartAfter(before)
			return
		}
		if loads, ok := s.cfg.Memory.Fetch(r.Grant); loads {
			if r.StartAfter(before); !ok {
				return
			}
			s.pop()
			s.loading++
			s.batch.Loading = append(s.batch.Loading, r)
			continue
		}
		seg, ok := s.cfg.Planner.Next(r, &left)
		if !ok || !s.cfg.Memory.Grow(r.Grant, seg.TokenTo, seg.TokenTo) {
			r.StartAfter(before)
			return
		}
		b = left
		s.run()
		s.candidates = append(s.candidates, candidate{req: r, seg: seg, isNew: true})
	}
}

// hasRoom reports whether memory holds what the base wants free before a request is admitted.
func (s *Scheduler) hasRoom(r *Request) bool {
	switch s.base.grants {
	case byChunkWithRoom:
		return s.cfg.Memory.Room(r.Grant, r.Target)
	case byChunkWithOutputs:
		tokens := r.Target
		if len(s.running) > 0 {
			tokens += remaining(r) + s.reserve.of(s.running, s.candidates) + 1
		}
		ok := s.cfg.Memory.Room(r.Grant, tokens)
		s.reserve.full = !ok
		return ok
	}
	return true
}
