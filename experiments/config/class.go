package config

import (
	"strings"

	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/dsa"
)

// classRule refuses a feature of systems that is not modelled for a class of models.
type classRule struct {
	key    string
	when   func(*llm.Model, *sim.Spec) bool
	reason string // {model} and {index_top_k} are the model's
	// obstacles are keys of the model. The reason ends with the values of the keys that are set.
	obstacles string
}

// classRules are checked in this order. The first that refuses holds.
var classRules = []classRule{
	{key: "selection.policy", reason: "{model} has no indexer (index_top_k)",
		when: func(m *llm.Model, s *sim.Spec) bool { return indexed(s) && !m.IsIndexed() }},
	{key: "selection.budget_tokens", reason: "the indexer of {model} selects {index_top_k} tokens",
		when: func(m *llm.Model, s *sim.Spec) bool {
			return indexed(s) && s.Selection.BudgetTokens != m.IndexTopK
		}},
	{key: "speculation.tokens", reason: "{model} has no layers that draft (mtp_layers)",
		when: func(m *llm.Model, s *sim.Spec) bool {
			return s.Speculation.Tokens > 0 && m.MTPLayers == 0
		}},
	{key: "speculation.tokens", obstacles: "window",
		reason: "queries of one request attend to the same tokens",
		when: func(m *llm.Model, s *sim.Spec) bool {
			return s.Speculation.Tokens > 0 && m.IsWindowed()
		}},
	{key: "selection.on", obstacles: "kv_lora_rank window",
		reason: "blocks are selected of the keys and values that each KV head has of a whole context",
		when:   ofWhole((*sim.Spec).Sparse)},
	{key: "offload.on", obstacles: "kv_lora_rank window",
		reason: "blocks are moved of keys and values of whole contexts",
		when:   ofWhole(func(s *sim.Spec) bool { return s.Offload.On })},
	{key: "prefill.attention", obstacles: "kv_lora_rank window",
		reason: "patterns need the keys of each head for a whole prompt",
		when:   ofWhole((*sim.Spec).SparsePrefill)},
	{key: "prefix_cache.mode", obstacles: "window",
		reason: "vLLM's prefix cache in HBM is simulated for windows where some layers keep whole " +
			"contexts",
		when: func(m *llm.Model, s *sim.Spec) bool {
			return m.IsWindowed() && s.CachesPrefixes() && !s.KeepsContexts() &&
				m.WindowLayers() == m.Layers
		}},
}

func indexed(s *sim.Spec) bool { return s.Sparse() && s.Selection.Policy == dsa.IndexerName }

// modelled reports whether a system's memory is modelled for a model of any class.
func modelled(m *llm.Model, s *sim.Spec) bool {
	return m.Plain() || indexed(s) && (s.Hot() || !s.Offload.On)
}

// ofWhole holds for a feature of a system with a model that has latents or windows.
func ofWhole(has func(*sim.Spec) bool) func(*llm.Model, *sim.Spec) bool {
	return func(m *llm.Model, s *sim.Spec) bool {
		return (m.IsLatent() || m.IsWindowed()) && !modelled(m, s) && has(s)
	}
}

// checkClass refuses system features that are not modelled for models with latents, windows or
// narrow weights.
func checkClass(m *llm.Model, s *sim.Spec) *KeyError {
	for _, r := range classRules {
		if !r.when(m, s) {
			continue
		}
		if r.obstacles != "" {
			r.reason += ", and {model} has " + m.Class(strings.Fields(r.obstacles)...)
		}
		return &KeyError{Key: r.key, Value: Show(specField(s, r.key).Interface()),
			Reason: strings.NewReplacer("{model}", m.Name, "{index_top_k}",
				Show(m.IndexTopK)).Replace(r.reason)}
	}
	return nil
}
