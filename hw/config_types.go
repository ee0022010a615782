package hw

import (
	"maps"
	"slices"
	"strings"
)

// configType is what a config.json omits that its model_type determines.
type configType struct {
	kvHeads bool // num_key_value_heads has a default other than one a query head: it must be given
	// head_dim has a default other than hidden_size / num_attention_heads: it must be given
	headDim bool
	tied    bool // embeddings share their weights unless it has the key
	qkvBias bool // always
	window  bool // sliding_window counts only with use_sliding_window, from layer max_window_layers on
}

// configTypes are the model types whose arithmetic Model has: every layer alike, full causal
// attention, an FFN of three matrices (gate, up, down). No type at all counts as Llama's.
var configTypes = map[string]configType{
	"":          {},
	"llama":     {},
	"yi":        {},
	"phi3":      {},
	"mistral":   {kvHeads: true},
	"qwen2":     {kvHeads: true, qkvBias: true, window: true},
	"qwen3":     {kvHeads: true, headDim: true, window: true},
	"chatglm":   {},
	"glm":       {kvHeads: true, headDim: true},
	"glm4":      {kvHeads: true, headDim: true},
	"gemma":     {kvHeads: true, headDim: true, tied: true},
	"granite":   {},
	"internlm2": {},
	"olmo2":     {},
	"stablelm":  {kvHeads: true},
}

// Why well-known types are none of them, where no key of a config.json shows it.
const (
	twoMatrices = "its FFN has two matrices"
	encoder     = "an encoder"
	noAttention = "state-space layers"
)

var otherTypes = map[string]string{
	"gpt2": twoMatrices, "gpt_neo": twoMatrices, "gpt_neox": twoMatrices, "gptj": twoMatrices,
	"gpt_bigcode": twoMatrices,
	"opt":         twoMatrices, "bloom": twoMatrices, "mpt": twoMatrices, "phi": twoMatrices,
	"falcon":     twoMatrices,
	"starcoder2": twoMatrices, "nemotron": twoMatrices, "persimmon": twoMatrices,
	"bert": encoder, "roberta": encoder, "xlm-roberta": encoder, "distilbert": encoder,
	"electra": encoder, "deberta-v2": encoder,
	"modernbert": encoder, "t5": encoder + " and a decoder", "bart": encoder + " and a decoder",
	"whisper": encoder + " and a decoder",
	"mamba":   noAttention, "mamba2": noAttention, "falcon_mamba": noAttention, "rwkv": noAttention,
	"gemma2": "local and global layers", "gemma3_text": "local and global layers",
}

// supported ends a refusal.
func supported() string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(configTypes)),
		func(s string) bool { return s == "" })
	return "modelled are decoders in 16 bits whose layers are alike, with full attention and a " +
		"gated FFN: model_type " +
		strings.Join(names, ", ") + "; or a shape written as TOML"
}
