package metrics

import (
	"fmt"

	"github.com/sparseserve/sparseserve/internal/warn"
)

// recomputation counts the work caused by preemptions: lost KV that is computed again.
type recomputation struct {
	tokenLayers int64   // recomputed tokens times layers
	share       float64 // step time spent on them, in seconds
	busy        float64 // seconds of all steps
}

// costlyPreemption is the share of step time spent on recomputation above which a warning is given.
const costlyPreemption = 0.05

// step adds a step of a model with the given layers. A step's time is divided evenly among its
// token-layers. A decode is one token in every layer.
func (c *recomputation) step(r *Step, layers int) {
	seconds := r.Timing.Elapsed.Seconds()
	c.busy += seconds
	if r.Recomputed == 0 {
		return
	}
	c.tokenLayers += r.Recomputed
	all := r.PrefillTokenLayers + int64(r.Decodes)*int64(layers)
	c.share += seconds * float64(r.Recomputed) / float64(all)
}

// preemption adds the cost of preemptions to the summary, and a warning if it is high.
func (m *Run) preemption(s *Summary) {
	if m.recomputed.tokenLayers == 0 {
		return
	}
	s.RecomputedTokens = m.recomputed.tokenLayers / int64(m.of.Layers)
	s.RecomputedShare = m.recomputed.share / m.recomputed.busy
	if s.RecomputedShare <= costlyPreemption || m.preemptions == 0 {
		return
	}
	text := fmt.Sprintf("preemptions: %d, %s a request; %.0f %% of the steps' time computes lost KV "+
		"again", m.preemptions, ratio(m.preemptions, m.done), 100*s.RecomputedShare)
	if m.done > 0 && m.of.Tokens > 0 {
		tokens := (m.rates.prompts + m.finishedTokens) / int64(m.done)
		if fit := m.of.Tokens / max(1, tokens); fit < int64(m.submitted) {
			text += fmt.Sprintf(": KV of %d of %d requests fits", fit, m.submitted)
		}
	}
	text += "; lower system.max_requests, give KV more memory"
	if !m.of.Prefixes && !m.of.Offload {
		text += ", or keep lost KV with prefix_cache.mode = \"vllm\""
	}
	s.warn(warn.New(warn.Preemptions, "%s", text).With(map[string]float64{
		"preemptions": float64(m.preemptions), "recomputed_share": s.RecomputedShare}))
}

// ratio formats preemptions per request: 0.5, 2.3, 120.
func ratio(preemptions, requests int) string {
	x := float64(preemptions) / float64(max(1, requests))
	if x < 10 {
		return fmt.Sprintf("%.2g", x)
	}
	return fmt.Sprintf("%.0f", x)
}
