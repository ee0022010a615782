package config

import (
	"fmt"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/dsa"
)

// checkClass refuses system features that are not modelled for models with latents, windows or
// narrow weights.
func checkClass(m *hw.Model, s *sim.Spec) *KeyError {
	bounded := m.IsLatent() || m.IsWindowed()
	refuse := func(key, value, why string, obstacles ...string) *KeyError {
		return &KeyError{Key: key, Value: value,
			Reason: fmt.Sprintf("%s, and %s has %s", why, m.Name, m.Class(obstacles...))}
	}
	const latent, windows = "kv_lora_rank", "window"
	indexed := s.Sparse() && s.Selection.Policy == dsa.IndexerName
	switch {
	case indexed && !m.IsIndexed():
		return &KeyError{Key: "selection.policy", Value: quote(s.Selection.Policy),
			Reason: m.Name + " has no indexer (index_top_k)"}
	case indexed && s.Selection.BudgetTokens != m.IndexTopK:
		return &KeyError{Key: "selection.budget_tokens", Value: fmt.Sprint(s.Selection.BudgetTokens),
			Reason: fmt.Sprintf("the indexer of %s selects %d tokens", m.Name, m.IndexTopK)}
	case s.Speculation.Tokens > 0 && m.MTPLayers == 0:
		return &KeyError{Key: "speculation.tokens", Value: fmt.Sprint(s.Speculation.Tokens),
			Reason: m.Name + " has no layers that draft (mtp_layers)"}
	case s.Speculation.Tokens > 0 && (m.IsIndexed() || m.IsWindowed()):
		return refuse("speculation.tokens", fmt.Sprint(s.Speculation.Tokens),
			"queries of one request attend to the same tokens", "index_top_k", windows)
	case m.Plain():
		return nil
	case indexed && (s.Hot() || !s.Offload.On):
	case bounded && s.Sparse():
		return refuse("selection.on", "true",
			"blocks are selected of the keys and values that each KV head has of a whole context", latent,
			windows)
	case bounded && s.Offload.On:
		return refuse("offload.on", "true", "blocks are moved of keys and values of whole contexts",
			latent,
			windows)
	case bounded && s.SparsePrefill():
		return refuse("prefill.attention", quote(s.Prefill.Attention),
			"patterns are of keys that each head has of a whole prompt", latent, windows)
	case m.IsWindowed() && s.CachesPrefixes():
		return refuse("prefix_cache.mode", quote(s.PrefixCache.Mode),
			"prefixes are kept whole in every layer",
			windows)
	case s.PrefixTiers():
		return refuse("prefix_cache.dram_gib", Show(s.PrefixCache.DRAMGiB),
			"prefixes below HBM are modelled for dense models with weights and KV of 2 bytes alone")
	}
	return nil
}
