package sim

import (
	"fmt"

	"github.com/sparseserve/sparseserve/internal/warn"
)

// recomputation counts the work that preemptions cost: KV that a request had, lost to another and
// computed again.
type recomputation struct {
	tokenLayers int64   // computed again, tokens times layers
	share       float64 // of the steps' time that they took, in seconds
	busy        float64 // seconds of all steps
}

// costlyPreemption is the share of the steps' time from which recomputing is warned of.
const costlyPreemption = 0.05

// step adds a step of a model of that many layers. A step's time is shared out among its tokens: a
// decode is one token in every layer.
func (c *recomputation) step(r *StepRecord, layers int) {
	seconds := r.Timing.Elapsed.Seconds()
	c.busy += seconds
	if r.Recomputed == 0 {
		return
	}
	c.tokenLayers += r.Recomputed
	all := r.PrefillTokenLayers + int64(r.Decodes)*int64(layers)
	c.share += seconds * float64(r.Recomputed) / float64(all)
}

// preemption fills in what preemptions cost, and warns where that is much.
func (m *Metrics) preemption(s *Summary) {
	if m.recomputed.tokenLayers == 0 {
		return
	}
	s.RecomputedTokens = m.recomputed.tokenLayers / int64(m.layers)
	s.RecomputedShare = m.recomputed.share / m.recomputed.busy
	if s.RecomputedShare <= costlyPreemption || m.preemptions == 0 {
		return
	}
	text := fmt.Sprintf("preemptions: %d, %s a request; %.0f %% of the steps' time computes lost KV "+
		"again", m.preemptions, ratio(m.preemptions, m.done), 100*s.RecomputedShare)
	if m.done > 0 && m.room > 0 {
		tokens := (m.rates.prompts + m.finishedTokens) / int64(m.done)
		if fit := m.room / max(1, tokens); fit < int64(m.submitted) {
			text += fmt.Sprintf(": KV of %d of %d requests fits", fit, m.submitted)
		}
	}
	text += "; lower system.max_requests, give KV more memory"
	if !m.prefixes && !m.offload {
		text += ", or keep lost KV with prefix_cache.mode = \"vllm\""
	}
	s.warn(warn.New(warn.Preemptions, "%s", text).With(map[string]float64{
		"preemptions": float64(m.preemptions), "recomputed_share": s.RecomputedShare}))
}

// ratio prints preemptions a request: 0.5, 2.3, 120.
func ratio(preemptions, requests int) string {
	x := float64(preemptions) / float64(max(1, requests))
	if x < 10 {
		return fmt.Sprintf("%.2g", x)
	}
	return fmt.Sprintf("%.0f", x)
}
