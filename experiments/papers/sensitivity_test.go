package papers

import (
	"testing"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim/score"
)

// What the numbers of PSA's Fig. 5 hang on: one seed, two sets, each parameter
// of the proxy moved, then the target and the layers that attend to everything.
// Whatever it is, top-k attends to more than PSA. A budget for each head attends
// to less than one for each layer, but where query heads that share KV hold little
// in common.
func TestSensitivityOfKVUse(t *testing.T) {
	if testing.Short() {
		t.Skip("a study of 5 s; make test-all runs it")
	}
	for _, c := range []struct {
		name string
		set  func(*sensitivity)
	}{
		{"as set", func(s *sensitivity) {}},
		{"skew_heads 0.2", func(s *sensitivity) { s.SkewHeads = 0.2 }},
		{"skew_heads 0.6", func(s *sensitivity) { s.SkewHeads = 0.6 }},
		{"skew_layers 0.08", func(s *sensitivity) { s.SkewLayers = 0.08 }},
		{"skew_layers 0.32", func(s *sensitivity) { s.SkewLayers = 0.32 }},
		{"skew_tokens 0.2", func(s *sensitivity) { s.SkewTokens = 0.2 }},
		{"sink 4", func(s *sensitivity) { s.Sink = 4 }},
		{"sink 8", func(s *sensitivity) { s.Sink = 8 }},
		{"recent 6", func(s *sensitivity) { s.Recent = 6 }},
		{"group 0.45", func(s *sensitivity) { s.Group = 0.45 }},
		{"group 0.9", func(s *sensitivity) { s.Group = 0.9 }},
		{"error 0.5", func(s *sensitivity) { s.Error = 0.5 }},
		{"target 0.99", func(s *sensitivity) { s.target = 0.99 }},
		{"target 0.995", func(s *sensitivity) { s.target = 0.995 }},
		{"no full layers", func(s *sensitivity) { s.full = func(*rival) int { return 0 } }},
		{"one for all sets", func(s *sensitivity) { s.pooled = true }},
		// as if the first two layers were so flat that a threshold took all of them
		{"PSA's full too", func(s *sensitivity) { s.full = func(*rival) int { return 2 } }},
	} {
		s := sensitivity{score.Default, 0.98, func(r *rival) int { return r.full }, false}
		c.set(&s)
		for _, model := range []string{"lwm-7b", "llama3.1-8b"} {
			use := s.meanUse(t, model)
			t.Logf("%-16s %-11s: PSA %.3f of the KV, vLLM-sparse over it %.2f, a budget for each head %.2f",
				c.name, model, use["psa"], use["vllm-sparse"]/use["psa"], use["psa-per-head"]/use["psa"])
			if use["vllm-sparse"] < use["psa"] || use["psa-per-head"] > 1.15*use["psa"] {
				t.Errorf("%s, %s: %v", c.name, model, use)
			}
		}
	}
}

// sensitivity is what may be moved.
type sensitivity struct {
	score.Params
	target float64
	full   func(*rival) int // first layers that attend to everything
	pooled bool             // a knob serves all sets
}

// meanUse is the KV that each system of blocks attends to at the target, mean
// over two sets.
func (s *sensitivity) meanUse(t *testing.T, model string) map[string]float64 {
	var spec accuracySpec
	readStudy(t, "psa-fig5", &spec)
	spec.Workload.Requests = 4
	scores, use := score.New(s.Params, run.ScoreSeed), map[string]float64{}
	sets := []string{"qasper", "gov_report"}
	for _, r := range spec.rivals() {
		if r.tokens == 1 {
			continue
		}
		r.full = s.full(&r)
		var all []*attention
		for _, set := range sets {
			requests, err := spec.requests(scores, &s.Params, model, set, 1, &r)
			if err != nil {
				t.Fatal(err)
			}
			if all = append(all, requests...); !s.pooled {
				use[r.name] += r.least(requests, s.target).share / float64(len(sets))
			}
		}
		if s.pooled {
			use[r.name] = r.least(all, s.target).share
		}
	}
	return use
}
