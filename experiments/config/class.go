package config

import (
	"errors"

	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/dsa"
)

// modelRules refuse what a system cannot do with its workload and model: features that are not
// modelled for latents, windows or narrow weights. They are checked in this order, after
// systemRules.
var modelRules = []rule{
	{key: "workload.prefix_hit",
		reason: "sets how much of a prompt is cached, and prefix_cache.mode = {prefix_cache.mode} of " +
			"system {system} finds it by content: set only one, or set prefix_cache.dram_gib, whose DRAM " +
			"then holds the declared prefix",
		when: func(p *Point, _ *llm.Model) bool {
			s := &p.System
			return p.Workload.PrefixHit > 0 && s.CachesPrefixes() && s.PrefixCache.DRAMGiB == 0
		}},
	{key: "selection.policy", reason: "{model} has no indexer (index_top_k)",
		when: ofModel(func(m *llm.Model, s *sim.Spec) bool { return indexed(s) && !m.IsIndexed() })},
	{key: "selection.budget_tokens", reason: "the indexer of {model} selects {index_top_k} tokens",
		when: ofModel(func(m *llm.Model, s *sim.Spec) bool {
			return indexed(s) && s.Selection.BudgetTokens != m.IndexTopK
		})},
	{key: "speculation.tokens", reason: "{model} has no layers that draft (mtp_layers)",
		when: ofModel(func(m *llm.Model, s *sim.Spec) bool {
			return s.Speculation.Tokens > 0 && m.MTPLayers == 0
		})},
	{key: "speculation.tokens",
		reason: "queries of one request attend to the same tokens, and {model} has {class window}",
		when: ofModel(func(m *llm.Model, s *sim.Spec) bool {
			return s.Speculation.Tokens > 0 && m.IsWindowed()
		})},
	{key: "selection.on",
		reason: "blocks are selected of the keys and values that each KV head has of a whole context" +
			whereas,
		when: ofWhole((*sim.Spec).Sparse)},
	{key: "offload.on",
		reason: "blocks are moved of keys and values of whole contexts" + whereas,
		when:   ofWhole(func(s *sim.Spec) bool { return s.Offload.On })},
	{key: "prefill.attention",
		reason: "patterns need the keys of each head for a whole prompt" + whereas,
		when:   ofWhole((*sim.Spec).SparsePrefill)},
	{key: "prefill.pattern", with: "prefill.attention", why: func(p *Point, m *llm.Model) string {
		_, err := PrefillMix(m, &p.System)
		return reasonOf(err)
	}},
	{key: "system.expert_parallel", with: "system.tensor_parallel",
		why: func(p *Point, m *llm.Model) string {
			_, err := shardOf(*m, &p.System)
			if spread := new(llm.SpreadError); errors.As(err, &spread) {
				return err.Error()
			}
			return ""
		}},
}

// whereas ends the reasons of ofWhole.
const whereas = ", and {model} has {class kv_lora_rank window}"

func ofModel(holds func(*llm.Model, *sim.Spec) bool) func(*Point, *llm.Model) bool {
	return func(p *Point, m *llm.Model) bool { return holds(m, &p.System) }
}

func indexed(s *sim.Spec) bool { return s.Sparse() && s.Selection.Policy == dsa.IndexerName }

// modelled reports whether a system's memory is modelled for a model of any class.
func modelled(m *llm.Model, s *sim.Spec) bool {
	return m.Plain() || indexed(s) && (s.Hot() || !s.Offload.On)
}

// ofWhole holds for a feature of a system with a model that has latents or windows.
func ofWhole(has func(*sim.Spec) bool) func(*Point, *llm.Model) bool {
	return ofModel(func(m *llm.Model, s *sim.Spec) bool {
		return (m.IsLatent() || m.IsWindowed()) && !modelled(m, s) && has(s)
	})
}
