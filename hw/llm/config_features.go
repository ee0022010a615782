package llm

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
func (c rawConfig) slides(kind *configType) bool {
	if _, ok := c["use_sliding_window"]; ok && !c.set("use_sliding_window") {
		return false
	}
	if kind.is("switched") {
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
	if _, known := c.kind(); known {
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

// supported is the end of the error for an unsupported model.
const supported = "modelled are decoders with a gated FFN or experts; the shape of one can be " +
	"written as TOML (examples/6-own-model.toml)"

// refusal describes everything that is not modelled; "" if all is modelled.
func (c rawConfig) refusal() string {
	kind, known := c.kind()
	var why []string
	for _, key := range slices.Sorted(maps.Keys(c)) {
		if what := c.refused(key, kind); what != "" {
			why = append(why, what)
		}
	}
	act := cmp.Or(c.text("hidden_act"), c.text("hidden_activation"))
	if (!known || c.modelType() == "") && act != "" && act != "silu" && act != "swish" {
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
