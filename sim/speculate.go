package sim

import (
	"errors"

	"github.com/sparseserve/sparseserve/sim/des"
)

// Drafter is a Device whose model has layers that predict tokens beyond the next one (MTP). Draft
// runs one of them once: the layer's work w, then the LM head on so many rows.
type Drafter interface {
	Draft(w *Work, rows int) error
}

// VerifiedRows is the most rows of the LM head in a step.
func (s *Spec) VerifiedRows() int { return s.MaxRequests * (1 + s.Speculation.Tokens) }

// NoSpeculation says why a system that drafts tokens cannot be served; "" where it can.
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

// accepted is how many tokens a decode gives: those of its drafts before the first that is refused,
// and one that the model itself predicts there, of those still wanted. Each position of an output
// is drawn once at most, by its place in it, so that no schedule changes a draw.
//
//	E = (1 - a^(k+1)) / (1 - a), of k drafts accepted with probability a each
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

// acceptanceStream sets the draws apart from others of the same seed.
const acceptanceStream = 0x6d7470

// draft has the device draft the tokens that the next step verifies. The first pass takes all
// tokens of the step, whose KV the MTP layer keeps too; each one after it the newest draft of every
// request.
func (s *Server) draft() error {
	st, k := &s.step, s.Spec.Speculation.Tokens
	if k == 0 {
		return nil
	}
	d := s.Device.(Drafter)
	rows, contexts := len(st.decodes), st.contexts
	for i := range s.batch.Prefills {
		if seg := &s.batch.Prefills[i]; seg.Completes(s.Model.Layers) {
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
