package sim

import (
	"errors"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/dsa"
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
	case s.Sparse() && s.Selection.Policy != dsa.IndexerName:
		return "needs selection.policy = \"indexer\" or selection.on = false: no kernel attends to " +
			"selected blocks for several queries of a request"
	case s.Offload.On && !s.Hot():
		return "needs offload.on = false or hot buffers: the shared cache has one query of a request " +
			"a step"
	case s.Segmented():
		return "needs prefill.split = \"plain\" or \"chunked\": drafts begin with all layers of a prompt"
	case s.MaxTokens <= s.Speculation.Tokens:
		return "leaves no decode within max_tokens: each verifies one token more than it drafts"
	}
	return ""
}

func (c *Config) checkSpeculation() error {
	if c.Spec.Speculation.Tokens == 0 {
		return nil
	}
	if _, ok := c.Device.(Drafter); !ok {
		return errors.New("sim: speculation.tokens: the device drafts no tokens")
	}
	if why := c.Spec.NoSpeculation(); why != "" {
		return errors.New("sim: speculation.tokens: " + why)
	}
	return nil
}

// accepted returns the number of tokens that a decode emits: the drafts before the first rejected
// one, plus one token that the model predicts there, at most the remaining output. Each output
// position has a random draw of its own, so that the schedule does not change the draws.
//
//	E = (1 - a^(k+1)) / (1 - a), for k drafts, each accepted with probability a
func (c *Config) accepted(r *request) int {
	n := 1
	for n <= c.Spec.Speculation.Tokens && r.Generated+n < r.Output {
		at := uint64(r.Generated + n)
		if u := des.Hash(c.Seed, acceptanceStream, uint64(r.ID), at) >> 11; float64(u)/(1<<53) >=
			c.Spec.Speculation.Acceptance {
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
	rows, reads := len(st.decodes), st.reads
	for i := range s.step.batch.Prefills {
		if seg := &s.step.batch.Prefills[i]; seg.Completes(s.Model.Layers) {
			rows++
			reads.add(s.sel, seg.TokenTo)
		}
	}
	if err := d.Draft(&st.work, rows); err != nil || rows == 0 {
		return err
	}
	st.drafts = Work{Tokens: rows, Decodes: rows, DecodeTokens: reads.contexts,
		BoundedTokens: reads.bounded}
	if w := &st.work; w.Sparse {
		st.drafts.Sparse, st.drafts.Swapped = true, w.Swapped/(1+w.Drafts)
		st.drafts.DecodeTokens, st.drafts.ScoredBlocks = reads.selected, reads.scored
	}
	for range k - 1 {
		if err := d.Draft(&st.drafts, rows); err != nil {
			return err
		}
	}
	return nil
}
