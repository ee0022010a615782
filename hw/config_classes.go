package hw

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// hfLatent is the latent attention and indexer part of a config.json.
type hfLatent struct {
	KVRank  int `json:"kv_lora_rank"`
	QRank   int `json:"q_lora_rank"`
	NopeDim int `json:"qk_nope_head_dim"`
	RopeDim int `json:"qk_rope_head_dim"`
	Value   int `json:"v_head_dim"`

	IndexTopK    int      `json:"index_topk"`
	IndexHeads   int      `json:"index_n_heads"`
	IndexHeadDim int      `json:"index_head_dim"`
	IndexFreq    int      `json:"index_topk_freq"`
	IndexOffset  int      `json:"index_skip_topk_offset"`
	IndexTypes   []string `json:"indexer_types"` // of layers: full, shared
}

// hfMixture is the experts part of a config.json. The key of the number of experts depends on the
// model_type.
type hfMixture struct {
	PerToken    int      `json:"num_experts_per_tok"`
	ExpertFFN   int      `json:"moe_intermediate_size"`
	DenseLayers int      `json:"first_k_dense_replace"`
	FFNTypes    []string `json:"mlp_layer_types"` // of layers: dense, sparse
}

// latentKeys, indexKeys and mixtureKeys are prefixes of the keys of the classes.
var (
	latentKeys = []string{"kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim",
		"v_head_dim"}
	indexKeys = []string{"index_topk", "index_n_heads", "index_head_dim", "index_skip_topk_offset",
		"index_share_for_mtp_iteration"}
	mixtureKeys = []string{"num_experts_per_tok", "experts_per_token", "moe_intermediate_size",
		"moe_router_dtype", "num_nextn_predict_layers"}
)

// models reports whether the type's class covers a key of a config.json, with its value.
func (k *configType) models(c rawConfig, key string) bool {
	switch key {
	case "moe_layer_freq", "decoder_sparse_step":
		return k.experts.experts != "" && c.number(key) == 1
	case "sliding_window_pattern":
		return k.windows != "" && c.number(key) >= 1
	case "sliding_window_size": // Gemma 2 has both keys
		return k.windows != "" && c.number(key) == c.number("sliding_window")
	case "attn_type_list": // of layers: 0 is linear attention, 1 attends to all
		return !bytes.Contains(c[key], []byte("0"))
	case "index_topk_freq":
		return k.indexed
	case "head_dim": // with latents the size of the rotated part, or unused
		return k.latent
	}
	return k.latent && slices.Contains(latentKeys, key) ||
		k.indexed && slices.Contains(indexKeys, key) ||
		k.experts.experts != "" && (slices.Contains(mixtureKeys, key) || key == k.experts.experts ||
			key == k.experts.shared)
}

// addLatent sets latent attention and indexer for a type that has them. The KV cache of an indexed
// model is FP8, as with vLLM's "auto" (vllm-project/vllm, 25988).
func (c *hfConfig) addLatent(m *Model, kind configType) error {
	if !kind.latent {
		return nil
	}
	m.KVHeads, m.QKVBias = 1, false
	m.Latent = Latent{KVRank: c.KVRank, RopeDim: c.RopeDim, NopeDim: c.NopeDim, ValueDim: c.Value,
		QRank: c.QRank}
	m.HeadDim = c.NopeDim + c.RopeDim
	if !kind.indexed {
		return nil
	}
	m.KVBytesEach = 1
	m.Indexer = Indexer{IndexTopK: c.IndexTopK, IndexHeads: c.IndexHeads,
		IndexHeadDim: c.IndexHeadDim, IndexKeyBytes: c.IndexHeadDim + indexScale}
	if c.IndexFreq > 1 {
		m.IndexFirst, m.IndexEvery = cmp.Or(c.IndexOffset, indexOffset), c.IndexFreq
	}
	for layer, kind := range c.IndexTypes {
		if want := m.SharesIndex(layer); want != (kind == "shared") {
			return fmt.Errorf("indexer_types: layer %d is %q, which index_topk_freq = %d after %d layers "+
				"does not give", layer, kind, m.IndexEvery, m.IndexFirst)
		}
	}
	return nil
}

// indexOffset is the default of index_skip_topk_offset.
const indexOffset = 2

// indexScale is the bytes of an FP8 index key's float32 scale.
const indexScale = 4

// addMixture sets the experts for a type that has them.
func (c *hfConfig) addMixture(m *Model, raw rawConfig, kind configType) error {
	if kind.experts.experts == "" {
		return nil
	}
	m.Mixture = Mixture{Experts: int(raw.number(kind.experts.experts)), ExpertsPerToken: c.PerToken,
		SharedExperts: int(raw.number(kind.experts.shared)),
		ExpertFFN:     cmp.Or(c.ExpertFFN, c.FFN), DenseLayers: c.DenseLayers}
	m.MTPLayers = c.MTP
	for layer, kind := range c.FFNTypes {
		if m.RoutesLayer(layer) != (kind == "sparse") {
			return fmt.Errorf("mlp_layer_types: layer %d is %q, which first_k_dense_replace = %d does not "+
				"give", layer, kind, m.DenseLayers)
		}
	}
	return nil
}

// Kinds of layer_types.
const (
	fullLayer   = "full_attention"
	windowLayer = "sliding_attention"
)

// addWindow sets the window and the layers that have it.
func (c rawConfig) addWindow(m *Model, kind configType) error {
	if !c.set("sliding_window") || !c.slides() || kind.windows == "" && !kind.switched ||
		m.Layers < 1 || m.Layers > mostLayers {
		return nil
	}
	pattern := kind.windows
	switch first := int(c.number("max_window_layers")); {
	case c.set("layer_types") && !kind.switched:
		var kinds []string
		if err := json.Unmarshal(c["layer_types"], &kinds); err != nil || len(kinds) != m.Layers {
			return fmt.Errorf("layer_types: want %d layers, got %d", m.Layers, len(kinds))
		}
		pattern = ""
		for _, k := range kinds {
			pattern += map[bool]string{true: "w", false: "f"}[k == windowLayer]
		}
	case kind.switched:
		if first < 0 || first > m.Layers {
			return fmt.Errorf("max_window_layers: want 0 to %d, got %d", m.Layers, first)
		}
		pattern = strings.Repeat("f", first) + strings.Repeat("w", m.Layers-first)
	case c.set("sliding_window_pattern"):
		every := min(c.number("sliding_window_pattern"), float64(m.Layers))
		pattern = strings.Repeat("w", int(every)-1) + "f"
	}
	if !strings.Contains(pattern, "w") {
		return nil
	}
	m.Window = Window{WindowTokens: int(c.number("sliding_window")), WindowPattern: period(pattern)}
	return nil
}

// period returns the shortest prefix that, repeated, equals the pattern.
func period(pattern string) string {
	for n := 1; n < len(pattern); n++ {
		if strings.HasPrefix(strings.Repeat(pattern[:n], len(pattern)/n+1), pattern) {
			return pattern[:n]
		}
	}
	return pattern
}
