package hw

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// rawConfig is a config.json with its values undecoded.
type rawConfig map[string]json.RawMessage

// nestedConfigs are the keys under which multimodal models keep their text decoder.
var nestedConfigs = []string{"text_config", "llm_config", "language_config", "thinker_config"}

// unmodelled lists, sorted, the keys that change computation or KV and that Model does not
// represent.
func (c rawConfig) unmodelled() []string {
	var found []string
	for _, key := range slices.Sorted(maps.Keys(c)) {
		if what := c.feature(key); what != "" {
			found = append(found, what)
		}
	}
	return found
}

// feature returns the key with its value if it is not modelled; else "".
func (c rawConfig) feature(key string) string {
	at := func(key string) string {
		value := string(bytes.TrimSpace(c[key]))
		if value == "" || value[0] == '{' || value[0] == '[' || len(value) > 40 {
			return key
		}
		return key + " = " + value
	}
	kind := configTypes[c.modelType()]
	switch {
	case !c.set(key):
		if key == "is_causal" && string(c[key]) == "false" {
			return at(key)
		}
		return ""
	case kind.models(c, key):
		return ""
	case key == "layer_types":
		if kinds := c.otherLayers(key, kind.windows != ""); len(kinds) > 0 {
			return key + " (" + strings.Join(kinds, ", ") + ")"
		}
	case key == "sliding_window":
		if c.slides() && kind.windows == "" && !kind.switched {
			return at(key)
		}
	case key == "v_head_dim":
		if c.number(key) != c.headDim() {
			return at(key)
		}
	case strings.Contains(key, "expert"):
		if c.number(key) != 1 {
			return at(key)
		}
	case slices.Contains(otherArithmetic, key),
		slices.ContainsFunc(otherPrefixes, func(p string) bool { return strings.HasPrefix(key, p) }):
		return at(key)
	}
	return ""
}

// otherArithmetic are keys that, unless null, false, 0 or empty, mean arithmetic that Model does
// not represent.
var otherArithmetic = []string{
	// Latent attention (MLA), and prediction beyond the next token.
	"kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "num_nextn_predict_layers",
	// Layers with different attention, KV or shape.
	"mlp_only_layers", "decoder_sparse_step", "sliding_window_pattern", "sliding_window_size",
	"attention_window_size", "attention_chunk_size",
	"global_attn_every_n_layers",
	"attention_types", "attention_layers", "attn_layer_period", "attn_type_list",
	"full_attention_interval", "hybrid_override_pattern",
	"layers_block_type", "block_types", "block_configs", "block_sparse_homo_head_pattern",
	"blocksparse_block_size",
	"dual_chunk_attention_config", "num_kv_shared_layers", "use_cla", "cross_attention_layers",
	"add_cross_attention",
	// State-space, recurrent and linear-attention layers.
	"state_size", "conv_kernel", "time_step_rank", "attention_hidden_size", "lru_width", "d_state",
	"d_conv",
	// Encoders.
	"is_encoder_decoder", "type_vocab_size", "encoder_layers", "num_decoder_layers",
	"use_bidirectional_attention",
	"compression_config",
}

// otherPrefixes are prefixes of such keys: mixtures of experts, sparse attention with an indexer,
// state-space and linear-attention layers.
var otherPrefixes = []string{"moe_", "index_", "mamba_", "ssm_", "rwkv", "linear_key_",
	"linear_value_", "linear_num_", "linear_conv_", "linear_attn"}

// set reports whether a key has a value other than null, false, 0 or empty.
func (c rawConfig) set(key string) bool {
	switch string(bytes.TrimSpace(c[key])) {
	case "", "null", "false", "0", "0.0", `""`, "[]", "{}":
		return false
	}
	return true
}

// number returns the number under a key, or 0.
func (c rawConfig) number(key string) float64 {
	v, _ := strconv.ParseFloat(string(bytes.TrimSpace(c[key])), 64)
	return v
}

// text returns the string under a key, or "".
func (c rawConfig) text(key string) string {
	var s string
	if json.Unmarshal(c[key], &s) != nil {
		return ""
	}
	return s
}

// modelType returns the model_type in lower case.
func (c rawConfig) modelType() string { return strings.ToLower(c.text("model_type")) }

// headDim returns the size of a query and key head.
func (c rawConfig) headDim() float64 {
	if d := c.number("head_dim"); d > 0 {
		return d
	}
	return c.number("hidden_size") / max(1, c.number("num_attention_heads"))
}

// otherLayers lists the kinds of layers other than full attention, and other than windows if
// windows is true.
func (c rawConfig) otherLayers(key string, windows bool) []string {
	var kinds []string
	if json.Unmarshal(c[key], &kinds) != nil {
		return []string{"unknown"}
	}
	slices.Sort(kinds)
	return slices.DeleteFunc(slices.Compact(kinds),
		func(k string) bool { return k == fullLayer || windows && k == windowLayer })
}

// slides reports whether any layer attends to a window shorter than the context.
func (c rawConfig) slides() bool {
	if _, ok := c["use_sliding_window"]; ok && !c.set("use_sliding_window") {
		return false
	}
	if configTypes[c.modelType()].switched {
		if !c.set("use_sliding_window") {
			return false
		}
		if _, ok := c["max_window_layers"]; ok &&
			c.number("max_window_layers") >= c.number("num_hidden_layers") {
			return false
		}
	}
	most, _, err := c.context()
	return most == 0 || err != nil || c.number("sliding_window") < most
}

// decoder returns the text decoder of a multimodal model and a note that names it. Some keys of the
// whole hold for it, too. Other models are their own decoder.
func (c rawConfig) decoder() (decoder rawConfig, note string) {
	const text = "the text part of a multimodal model (%s); images and sound are not served"
	for _, key := range nestedConfigs {
		var part rawConfig
		if !c.set(key) || json.Unmarshal(c[key], &part) != nil || part == nil {
			continue
		}
		for _, of := range []string{"quantization_config", "dtype", "torch_dtype",
			"tie_word_embeddings", "_name_or_path"} {
			if !part.set(of) && c.set(of) {
				part[of] = c[of]
			}
		}
		decoder, _ = part.decoder()
		return decoder, fmt.Sprintf(text, key)
	}
	if slices.ContainsFunc(towers, c.set) {
		note = fmt.Sprintf(text, "its keys outside vision_config and audio_config")
	}
	return c, note
}

// towers are keys of other modalities beside a decoder's own.
var towers = []string{"vision_config", "audio_config", "mm_vision_tower", "mm_projector_type"}

// likeLlama returns a note for an unknown model_type with the fields of a dense decoder.
func (c rawConfig) likeLlama() string {
	if _, known := configTypes[c.modelType()]; known {
		return ""
	}
	return fmt.Sprintf("model_type %q is not known: taken for a dense decoder like Llama, because no "+
		"field says otherwise", c.text("model_type"))
}

// refuse returns an error that names everything that is not modelled, or nil.
func (c rawConfig) refuse(file string) error {
	if what := c.refusal(); what != "" {
		return fmt.Errorf("%s: %s; %s", file, what, supported)
	}
	return nil
}

// narrowed returns a note for a checkpoint with 32-bit weights: vLLM's --dtype auto casts them to
// bfloat16.
func (c rawConfig) narrowed() string {
	for _, key := range []string{"dtype", "torch_dtype"} {
		if strings.TrimPrefix(c.text(key), "torch.") == "float32" {
			return key + " = \"float32\": weights are served in two bytes each, because vLLM's " +
				"--dtype auto casts them to bfloat16"
		}
	}
	return ""
}

// refusal describes everything that is not modelled; "" if all is modelled.
func (c rawConfig) refusal() string {
	kind := c.modelType()
	_, known := configTypes[kind]
	why := c.unmodelled()
	act := cmp.Or(c.text("hidden_act"), c.text("hidden_activation"))
	if (kind == "" || !known) && act != "" && act != "silu" && act != "swish" {
		why = append(why, fmt.Sprintf("hidden_act = %q without a model_type that tells if the FFN "+
			"is gated", act))
	}
	for _, key := range []string{"dtype", "torch_dtype"} {
		switch t := strings.TrimPrefix(c.text(key), "torch."); t {
		case "float16", "bfloat16", "float32": // narrowed reports the last one
		default:
			if c.set(key) {
				why = append(why, fmt.Sprintf("%s = %s", key, bytes.TrimSpace(c[key])))
			}
		}
	}
	for _, key := range []string{"num_hidden_layers", "hidden_size", "num_attention_heads",
		"intermediate_size", "vocab_size"} {
		if !known && len(why) == 0 && !c.set(key) {
			why = append(why, "no "+key)
		}
	}
	reasons := strings.Join(why, ", ")
	switch {
	case !known && reasons != "":
		return fmt.Sprintf("model_type %q is not modelled: %s", c.text("model_type"), reasons)
	case reasons != "":
		return "not modelled: " + reasons
	}
	return ""
}
