package hw

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/tomlfile"
)

// hfConfig is the part of a Hugging Face config.json that gives a decoder's shape. GLM uses other
// names than the usual ones.
type hfConfig struct {
	NameOrPath   string `json:"_name_or_path"`
	Layers       int    `json:"num_hidden_layers"`
	LayersGLM    int    `json:"num_layers"`
	Hidden       int    `json:"hidden_size"`
	QHeads       int    `json:"num_attention_heads"`
	KVHeads      int    `json:"num_key_value_heads"`
	MultiQuery   bool   `json:"multi_query_attention"`
	Groups       int    `json:"multi_query_group_num"`
	HeadDim      int    `json:"head_dim"`
	KVChannels   int    `json:"kv_channels"`
	FFN          int    `json:"intermediate_size"`
	FFNGLM       int    `json:"ffn_hidden_size"`
	Vocab        int    `json:"vocab_size"`
	PaddedVocab  int    `json:"padded_vocab_size"`
	Tied         *bool  `json:"tie_word_embeddings"`
	Bias         bool   `json:"attention_bias"`
	BiasGLM      bool   `json:"add_qkv_bias"`
	BiasStableLM bool   `json:"use_qkv_bias"`
	BiasInternLM bool   `json:"bias"`

	hfLatent
	hfMixture
	MTP int `json:"num_nextn_predict_layers"`
}

// parseConfigJSON reads a Hugging Face config.json. It returns an error for a model whose
// arithmetic Model does not represent. As with vLLM's "auto", weights and KV are served in 16 bits
// for 16- and 32-bit checkpoints; quantization_config says how narrower ones are served.
func parseConfigJSON(file string, data []byte) (Model, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	var raw rawConfig
	if err := files.ParseJSON(file, data, &raw); err != nil {
		return Model{}, err
	}
	if raw == nil {
		return Model{}, fmt.Errorf("%s:1: want an object, got null", file)
	}
	raw, part := raw.decoder()
	if err := raw.refuse(file); err != nil {
		return Model{}, err
	}
	var c hfConfig
	text := data
	if part != "" {
		text, _ = json.Marshal(raw) // of values that were parsed
	}
	if err := files.ParseJSON(file, text, &c); err != nil {
		return Model{}, err
	}
	kind := configTypes[raw.modelType()]
	switch {
	case kind.kvHeads && c.KVHeads == 0:
		return Model{}, fmt.Errorf("%s: num_key_value_heads: missing, and model_type %q says nothing of "+
			"it", file, raw.text("model_type"))
	case kind.headDim && c.HeadDim == 0:
		return Model{}, fmt.Errorf("%s: head_dim: missing, and model_type %q says nothing of it", file,
			raw.text("model_type"))
	}
	context, note, err := raw.context()
	if err != nil {
		return Model{}, fmt.Errorf("%s: %w", file, err)
	}
	m := Model{
		Name:            configName(file, c.NameOrPath),
		Layers:          cmp.Or(c.Layers, c.LayersGLM),
		Hidden:          c.Hidden,
		QHeads:          c.QHeads,
		KVHeads:         c.KVHeads,
		HeadDim:         cmp.Or(c.HeadDim, c.KVChannels),
		FFN:             cmp.Or(c.FFN, c.FFNGLM),
		Vocab:           cmp.Or(c.PaddedVocab, c.Vocab),
		MaxContext:      int(min(context, 1<<31)),
		TiedEmbeddings:  c.Tied == nil && kind.tied || c.Tied != nil && *c.Tied,
		QKVBias:         c.Bias || c.BiasGLM || c.BiasStableLM || c.BiasInternLM || kind.qkvBias,
		WeightBytesEach: 2,
		KVBytesEach:     2,
		Source:          file,
	}
	if m.KVHeads == 0 && c.MultiQuery {
		m.KVHeads = c.Groups
	}
	if m.KVHeads == 0 {
		m.KVHeads = m.QHeads
	}
	if m.HeadDim == 0 && m.QHeads > 0 {
		m.HeadDim = m.Hidden / m.QHeads
	}
	m.Note = strings.Join(slices.DeleteFunc([]string{part, raw.likeLlama(), note, raw.narrowed()},
		func(s string) bool { return s == "" }), "; ")
	if err := c.addLatent(&m, kind); err != nil {
		return Model{}, fmt.Errorf("%s: %w", file, err)
	}
	if err := c.addMixture(&m, raw, kind); err != nil {
		return Model{}, fmt.Errorf("%s: %w", file, err)
	}
	at, err := raw.addQuantFile(file)
	if err != nil {
		return Model{}, err
	}
	if err := raw.quantize(&m); err != nil {
		return Model{}, fmt.Errorf("%s: %w", cmp.Or(at,
			fmt.Sprintf("%s:%d: quantization_config", file, lineOf(data, "quantization_config"))), err)
	}
	if err := raw.addWindow(&m, kind); err != nil {
		return Model{}, fmt.Errorf("%s: %w", file, err)
	}
	err = m.validate()
	if at := new(tomlfile.KeyError); errors.As(err, &at) {
		at.Path = cmp.Or(hfKeys[at.Path], at.Path)
		return Model{}, fmt.Errorf("%s: %w", file, at)
	}
	return m, nil
}

// hfKeys maps a field to its config.json key.
var hfKeys = map[string]string{
	"layers": "num_hidden_layers", "hidden": "hidden_size", "q_heads": "num_attention_heads",
	"kv_heads": "num_key_value_heads", "ffn": "intermediate_size", "vocab": "vocab_size",
	"max_context": "max_position_embeddings", "qk_rope_dim": "qk_rope_head_dim",
	"qk_nope_dim": "qk_nope_head_dim", "index_top_k": "index_topk", "index_heads": "index_n_heads",
	"experts_per_token": "num_experts_per_tok", "expert_ffn": "moe_intermediate_size",
	"dense_layers": "first_k_dense_replace", "window": "sliding_window",
}

// configName names a model after its checkpoint, or else after its file; a config.json is named
// after its folder.
func configName(file, checkpoint string) string {
	if checkpoint != "" {
		return filepath.Base(checkpoint)
	}
	if base := filepath.Base(file); base != "config.json" {
		return strings.TrimSuffix(base, ".json")
	}
	if abs, err := filepath.Abs(file); err == nil {
		return filepath.Join(filepath.Base(filepath.Dir(abs)), "config.json")
	}
	return "config"
}
