package sim

import (
	"errors"

	"github.com/sparseserve/sparseserve/sim/des"
)

// Drafter is a Device whose model has MTP layers, which predict tokens beyond the next one. Draft
// runs one MTP layer once with work w, then the LM head on the given number of rows.
type Drafter interface {
	Draft(w *Work, rows int) error
}

// VerifiedRows returns the largest number of LM head rows in a step.
func (s *Spec) VerifiedRows() int { return s.MaxRequests * (1 + s.Speculation.Tokens) }

// NoSpeculation returns why a system cannot use speculation, or "".
func (s *Spec) NoSpeculation() string {
	switch {
	case s.Speculation.Tokens == 0:
		return ""
	case s.Sparse():
		return "needs selection.on = false: which blocks each of several queries selects is not modelled"
	case s.Offload.On:
		return "needs offload.on = false: KV of drafts that are refused is never moved"
	case s.CachesPrefixes():
		return "needs prefix_cache.mode = \"off\": blocks of drafts that are refused would be shared"
	case s.Prefill.Split != "plain" && s.Prefill.Split != "chunked":
		return "needs prefill.split = \"plain\" or \"chunked\": drafts begin with all layers of a prompt"
	case s.MaxTokens <= s.Speculation.Tokens:
		return "leaves no decode within max_tokens: each verifies one token more than it drafts"
	}
	return ""
}

func (s *Server) checkSpeculation() error {
	if s.Spec.Speculation.Tokens == 0 {
		return nil
	}
	if _, ok := s.Device.(Drafter); !ok {
		return errors.New("sim: speculation.tokens: the device drafts no tokens")
	}
	if why := s.Spec.NoSpeculation(); why != "" {
		return errors.New("sim: speculation.tokens: " + why)
	}
	return nil
}

// accepted returns the number of tokens that a decode emits: the drafts before the first rejected
// one, plus one token that the model predicts there, at most the remaining output. Each output
// position has a random draw of its own, so that the schedule does not change the draws.
//
//	E = (1 - a^(k+1)) / (1 - a), for k drafts, each accepted with probability a
func (s *Server) accepted(r *request) int {
	n := 1
	for n <= s.Spec.Speculation.Tokens && r.Generated+n < r.Output {
		at := uint64(r.Generated + n)
		if u := des.Hash(s.Seed, acceptanceStream, uint64(r.ID), at) >> 11; float64(u)/(1<<53) >=
			s.Spec.Speculation.Acceptance {
			break
		}
		n++
	}
	return n
}

// acceptanceStream separates these draws from other draws with the same seed.
const acceptanceStream = 0x6d7470

// draft makes the device draft the tokens that the next step verifies. The first pass takes all
// tokens of the step, because the MTP layer needs their KV too. Each later pass takes the newest
// draft of every request.
func (s *Server) draft() error {
	st, k := &s.step, s.Spec.Speculation.Tokens
	if k == 0 {
		return nil
	}
	d := s.Device.(Drafter)
	rows, contexts := len(st.decodes), st.contexts
	for i := range s.step.batch.Prefills {
		if seg := &s.step.batch.Prefills[i]; seg.Completes(s.Model.Layers) {
			rows++
			contexts += int64(seg.TokenTo)
		}
	}
	if err := d.Draft(&st.work, rows); err != nil || rows == 0 {
		return err
	}
	st.drafts = Work{Tokens: rows, Decodes: rows, DecodeTokens: contexts}
	for range k - 1 {
		if err := d.Draft(&st.drafts, rows); err != nil {
			return err
		}
	}
	return nil
}
