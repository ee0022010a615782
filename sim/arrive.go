package sim

import (
	"fmt"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/sched"
)

// frontEnd is what a request passes before it reaches the scheduler.
type frontEnd struct {
	coming    des.Slots[Ticket] // on their way to the scheduler
	tokenised des.Time          // when the prompts so far are tokenised
}

// Offer sends a request to the server's front end, where one thread tokenises prompts in turn.
func (s *Server) Offer(t Ticket) {
	s.place.load.Requests++
	s.place.load.add(expected(s.memory, s.Model.MaxContext, &t))
	f := &s.front
	f.tokenised = max(f.tokenised, s.Now()) + des.Time(t.Arrival.Prompt)*s.Engine.Token
	s.schedule(f.tokenised+s.Engine.Request, arrive, f.coming.Hold(t))
}

// ended schedules the request that follows an ended one, if any.
func (s *Server) ended(a Arrival, at des.Time, rejected bool) error {
	s.place.load.Requests--
	return s.Shared.ended(a, at, rejected)
}

// arrival queues an arriving request. It truncates or rejects a request that is too long.
func (s *Server) arrival(t Ticket) error {
	a := t.Arrival
	s.place.load.remove(expected(s.memory, s.Model.MaxContext, &t))
	prompt, limit := s.cut(&a)
	rec := &t.Record
	rec.ID, rec.Replica, rec.Set, rec.Arrival = t.ID, s.place.Replica, a.Set, a.At
	rec.Given, rec.Prompt, rec.Output = a.Prompt, prompt, a.Output
	if rec.Rejected = s.reject(&a, prompt, limit); rec.Rejected != "" {
		s.Metrics.Reject(rec)
		if err := s.rec.Request(&rec.Request); err != nil {
			return err
		}
		return s.ended(a, s.Now()+s.Engine.Reply, true)
	}
	if prompt < a.Prompt && rec.Retries == 0 {
		s.Metrics.Truncate(a.Prompt, prompt)
	}
	r := s.free.take()
	r.arrival, r.record = a, t.Record
	r.Request = sched.NewRequest(t.ID, prompt, a.Output, &r.granted)
	r.Resume(t.Generated)
	if s.future != nil && t.ID > s.future.Requests() {
		return fmt.Errorf("sim: request %d arrives, and Config.Future has %d", t.ID,
			s.future.Requests())
	}
	s.prefixes.arrive(r)
	s.requests[r.Request] = r
	s.weigh(r)
	if s.Engine.PlanAhead && s.busy {
		s.arrivedLate = append(s.arrivedLate, r.Request)
		return nil
	}
	s.sched.Add(r.Request)
	return nil
}

// cut returns the number of prompt tokens to serve and the largest number that the request may
// have.
func (c *Config) cut(a *Arrival) (prompt, limit int) {
	limit = c.Spec.Prefill.MaxPromptTokens
	if limit == 0 || limit > c.Model.MaxContext {
		limit = c.Model.MaxContext
	}
	limit = min(limit, c.Model.MaxContext-a.Output)
	prompt = a.Prompt
	if prompt > limit && c.Spec.Prefill.OverLength == "truncate" && limit > 0 {
		prompt = limit
	}
	return prompt, limit
}

// reject returns why a request can never be served, or "".
func (s *Server) reject(a *Arrival, prompt, limit int) string {
	output := a.Output
	switch {
	case prompt < 1 || output < 1:
		return fmt.Sprintf("prompt of %d and output of %d tokens, need at least 1 of each",
			prompt, output)
	case limit < 1:
		return fmt.Sprintf("output of %d tokens and a prompt exceed the model's context of %d", output,
			s.Model.MaxContext)
	case prompt > limit:
		return fmt.Sprintf("prompt of %d tokens exceeds the maximum of %d", prompt, limit)
	}
	tokens := prompt + output + s.Spec.Speculation.Tokens
	if !s.memory.Fits(tokens) {
		where := "HBM"
		if s.Spec.Offload.On {
			where = "DRAM"
		}
		return fmt.Sprintf("KV of %d tokens exceeds %s, which holds %d tokens of which %.3g %% stay free",
			tokens, where, s.memory.Tokens(s.memory.Total()), 100*s.Spec.Watermark)
	}
	return s.memory.refuse(prompt, output, s.prefixHit(a.Cached, prompt))
}

// unused holds requests for reuse.
type unused []*request

func (u *unused) take() *request {
	if n := len(*u); n > 0 {
		r := (*u)[n-1]
		*u = (*u)[:n-1]
		*r = request{granted: r.granted, keys: r.keys[:0], swap: swap{reuses: r.reuses[:0]},
			choice: choice{cursors: r.cursors, cycles: r.cycles, layers: r.layers, used: r.used,
				latest: r.latest}}
		return r
	}
	return &request{}
}
