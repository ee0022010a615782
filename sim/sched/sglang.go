package sched

import "slices"

// sglang fills a batch like SGLang 0.4 and 0.5 (sgl-project/sglang, python/sglang/srt/managers:
// scheduler.py get_next_batch_to_run, schedule_policy.py PrefillAdder, schedule_batch.py
// retract_decode). Requests are in order of arrival, as with --schedule-policy fcfs.
//
//   - A step has prefills or decodes, never both. Prefills come first: the rest of the one prompt
//     that is in chunks, then waiting requests. MaxTokens limits the tokens of a step.
//   - A waiting request is admitted if memory holds its prompt, its output and a share of the
//     outputs that running requests still have to generate (reserve.ratio). Once memory or
//     MaxRequests stops an admission, none is tried until a request has ended.
//   - A decode without a free block retracts the request with the fewest generated tokens; of
//     equals, the one with the longest prompt. It goes to the end of the queue and prefills again.
//
// An output's length is known to the simulated server, as for a client that sets max_tokens to it.
func (s *Scheduler) sglang() {
	if len(s.running) == 0 {
		s.reserve.restart()
	}
	b := s.budget()
	decodes := slices.ContainsFunc(s.running, (*Request).Decoding)
	for i := 0; i < len(s.running); i++ {
		r, left := s.running[i], b
		if r.Decoding() {
			continue
		}
		seg, ok := s.cfg.Planner.Next(r, &left)
		// a prompt waits for memory that decodes will free
		if ok && (s.cfg.Memory.Grow(r.Grant, seg.TokenTo, seg.TokenTo) ||
			!decodes && s.grow(r, seg.TokenTo, seg.TokenTo)) {
			b = left
			s.candidates = append(s.candidates, candidate{req: r, seg: seg})
		}
	}
	s.reserve.full = s.reserve.full || len(s.running) >= s.cfg.MaxRequests
	if !s.reserve.full {
		for s.admitWaiting(&b); s.reclaim(); s.admitWaiting(&b) {
		}
	}
	if len(s.candidates) == 0 {
		s.decodeOrRetract()
	}
}

// reserve is the memory that admissions leave for the outputs of running requests.
type reserve struct {
	first float64 // ratio after a pause
	ratio float64 // share of the remaining outputs that is reserved
	full  bool    // memory or MaxRequests stopped an admission, and no request has ended since
}

// SGLang's global_config.py: default_init_new_token_ratio, default_min_new_token_ratio_factor,
// default_new_token_ratio_decay_steps, retract_decode_steps; schedule_policy.py:
// CLIP_MAX_NEW_TOKENS.
const (
	firstRatio   = 0.7
	leastRatio   = 0.14 // of the first
	decaySteps   = 600
	retractSteps = 20
	mostReserved = 4096 // tokens of an output
)

func newReserve(conservativeness float64) reserve {
	first := min(1, firstRatio*conservativeness)
	return reserve{first: first, ratio: first}
}

func (v *reserve) restart() { v.ratio, v.full = v.first, false }

// decay lowers the ratio after decode steps without a retraction.
func (v *reserve) decay(steps int) {
	least := leastRatio * v.first
	v.ratio = max(least, v.ratio-float64(steps)*(v.first-least)/decaySteps)
}

// remaining is the part of a request's remaining output that a reservation counts, in tokens.
func remaining(r *Request) int { return min(r.Output-r.Generated, mostReserved) }

// of returns the tokens that admissions leave free for running requests. Requests whose prompt ends
// in this step count in full.
func (v *reserve) of(running []*Request, candidates []candidate) int {
	tokens, decoding := 0, 0
	for _, r := range running {
		if r.Decoding() {
			decoding += remaining(r)
		}
	}
	for i := range candidates {
		if c := &candidates[i]; c.seg.TokenTo == c.req.Target {
			tokens += remaining(c.req)
		}
	}
	return tokens + int(float64(decoding)*v.ratio)
}

// decodeOrRetract makes all decoding requests candidates, after it has retracted what it must.
func (s *Scheduler) decodeOrRetract() {
	retracted := false
	for i := 0; i < len(s.running); i++ {
		r := s.running[i]
		if !r.Decoding() ||
			s.cfg.Memory.Grow(r.Grant, r.Context()+s.cfg.Drafts, r.Context()) {
			continue
		}
		s.Add(s.stop(victim(s.running)))
		retracted, i = true, -1
	}
	generated, outputs := 0, 0
	for _, r := range s.running {
		if r.Decoding() {
			generated, outputs = generated+r.Generated+retractSteps, outputs+r.Output
			s.candidates = append(s.candidates, candidate{req: r})
		}
	}
	switch {
	case !retracted:
		s.reserve.decay(1)
	case outputs > 0:
		s.reserve.ratio, s.reserve.full = min(1, float64(generated)/float64(outputs)), false
	}
}

// victim returns the place of the request to retract. If only one request decodes, this is the
// unfinished prefill; SGLang ends with an error there.
func victim(running []*Request) int {
	at, decoding, prefill := -1, 0, -1
	for i, r := range running {
		if !r.Decoding() {
			prefill = i
			continue
		}
		decoding++
		if at < 0 || r.Generated < running[at].Generated ||
			r.Generated == running[at].Generated && r.Prompt > running[at].Prompt {
			at = i
		}
	}
	if decoding == 1 && prefill >= 0 {
		return prefill
	}
	return at
}

// Repeated tells that the last batch ran again for the given number of steps.
func (s *Scheduler) Repeated(steps int) { s.reserve.decay(steps) }
