package sched

// vllm fills a batch like vLLM 0.5 to 0.6.
//
// With chunked prefill one token budget serves an iteration. Running requests come first, in
// arrival order: a decode uses one token, an unfinished prefill the rest. Then waiting requests
// join, first come first served, until one does not fit. Admission needs all blocks of the
// prompt at once, and 1 % of the memory must stay free. A decode without a free block preempts
// the last running request, which goes to the front of the waiting queue and prefills again.
//
// Without chunking, waiting prefills run first, in separate batches.
func (s *Scheduler) vllm() {
	b := s.budget()
	if s.cfg.Planner.Mode == Plain {
		if s.admitWaiting(&b); len(s.candidates) > 0 {
			return
		}
	}
	for i := 0; i < len(s.running); i++ {
		r := s.running[i]
		if r.Decoding() {
			if b.Tokens <= s.cfg.Drafts {
				break
			}
			s.decode(r, &b)
			continue
		}
		s.prefill(r, &b)
	}
	if s.cfg.Planner.Mode != Plain {
		s.admitWaiting(&b)
	}
}

func (s *Scheduler) budget() Budget {
	return Budget{Tokens: s.cfg.MaxTokens, Inject: s.cfg.Planner.MaxInject}
}

// admitWaiting moves waiting requests to the running queue while the memory has what the base
// grants at admission and the budget allows a segment.
func (s *Scheduler) admitWaiting(b *Budget) {
	if s.base.grants == wholePrompt {
		s.admitWhole(b)
	} else {
		s.admitByChunk(*b)
	}
}

func (s *Scheduler) admitWhole(b *Budget) {
	for !s.closed && len(s.waiting) > 0 && len(s.running) < s.cfg.MaxRequests {
		r := s.waiting[0]
		before, left := s.match(r), *b
		seg, ok := s.cfg.Planner.Next(r, &left)
		if !ok || !s.cfg.Memory.Admit(r.Grant, r.Target, seg.TokenTo) {
			r.StartAfter(before)
			return
		}
		*b = left
		s.run()
		s.candidates = append(s.candidates, candidate{req: r, seg: seg, isNew: true})
	}
}
