package experiments

import (
	"testing"

	"sparseserve/traces"
)

// What the numbers of PSA's Fig. 5 hang on: one seed, four sets, each parameter
// of the proxy moved. Whatever it is, top-k attends to more than PSA. A
// budget for each head attends to less than one for each layer, but where query
// heads that share KV hold little in common.
func TestSensitivityOfKVUse(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, c := range []struct {
		name string
		set  func(*traces.ScoreParams)
	}{
		{"as set", func(p *traces.ScoreParams) {}},
		{"skew_heads 0.2", func(p *traces.ScoreParams) { p.SkewHeads = 0.2 }},
		{"skew_heads 0.6", func(p *traces.ScoreParams) { p.SkewHeads = 0.6 }},
		{"skew_layers 0.08", func(p *traces.ScoreParams) { p.SkewLayers = 0.08 }},
		{"skew_layers 0.32", func(p *traces.ScoreParams) { p.SkewLayers = 0.32 }},
		{"skew_tokens 0.2", func(p *traces.ScoreParams) { p.SkewTokens = 0.2 }},
		{"sink 4", func(p *traces.ScoreParams) { p.Sink = 4 }},
		{"sink 8", func(p *traces.ScoreParams) { p.Sink = 8 }},
		{"recent 6", func(p *traces.ScoreParams) { p.Recent = 6 }},
		{"group 0.45", func(p *traces.ScoreParams) { p.Group = 0.45 }},
		{"error 0.5", func(p *traces.ScoreParams) { p.Error = 0.5 }},
	} {
		p := traces.DefaultScores
		c.set(&p)
		for _, model := range []string{"lwm-7b", "llama3.1-8b"} {
			use := meanUse(t, &p, model)
			t.Logf("%-16s %-11s: PSA %.3f of the KV, vLLM-sparse over it %.2f, a budget for each head %.2f", c.name, model, use["psa"], use["vllm-sparse"]/use["psa"], use["psa-per-head"]/use["psa"])
			if use["vllm-sparse"] < use["psa"] || use["psa-per-head"] > 1.15*use["psa"] {
				t.Errorf("%s, %s: %v", c.name, model, use)
			}
		}
	}
}

// meanUse is the KV that each system of blocks attends to at the target, mean
// over four sets.
func meanUse(t *testing.T, p *traces.ScoreParams, model string) map[string]float64 {
	var spec accuracySpec
	if err := decodePaper("psa-fig5", &spec); err != nil {
		t.Fatal(err)
	}
	spec.Workload.Requests = 10
	scores, use := traces.NewScores(*p, scoreSeed), map[string]float64{}
	sets := []string{"hotpotqa", "qasper", "gov_report", "multi_news"}
	for _, set := range sets {
		for _, r := range spec.rivals() {
			if r.tokens == 1 {
				continue
			}
			requests, err := spec.requests(scores, p, model, set, 1, &r)
			if err != nil {
				t.Fatal(err)
			}
			use[r.name] += r.least(requests, spec.Target).share / float64(len(sets))
		}
	}
	return use
}
