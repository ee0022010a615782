package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ropeScaling is the extension of the context that a checkpoint was trained on.
type ropeScaling struct {
	Type     string   `json:"rope_type"`
	OldType  string   `json:"type"`
	Factor   *float64 `json:"factor"`
	Alpha    *float64 `json:"alpha"`
	Original *float64 `json:"original_max_position_embeddings"`
}

// longRope is the scaling for which a server uses the context before scaling.
const longRope = "longrope"

// scalesContext reports for each type of scaling whether the context is multiplied by its factor.
// Checkpoints of other types have the scaled context in max_position_embeddings.
var scalesContext = map[string]bool{
	"linear": true, "dynamic": true, "ntk": true, "yarn": true,
	"default": false, "llama3": false, longRope: false,
}

// olderRopeTypes maps older names of rope types to present ones.
var olderRopeTypes = map[string]string{"su": longRope, "mrope": "default"}

// context returns the context in tokens that vLLM serves without --max-model-len, and a note if it
// could serve more (_get_and_verify_max_len in vllm/config/model.py, vLLM 0.15). It ignores
// model_max_length of tokenizer_config.json, which vLLM reads for pooling models only.
func (c rawConfig) context() (tokens float64, note string, err error) {
	for _, k := range configKeys() { // the smallest of several
		n := c.number(k.key)
		if k.field == "max_context" && c.set(k.key) && (tokens == 0 || n < tokens) {
			tokens = n
		}
	}
	if c.set("model_max_length") {
		tokens = c.number("model_max_length")
	}
	field, scalings, err := c.ropeScalings()
	if err != nil || strings.HasPrefix(c.modelType(), "gemma3") { // already scaled
		return tokens, "", err
	}
	factor, whole := 1.0, tokens
	for _, name := range slices.Sorted(maps.Keys(scalings)) {
		s, at := scalings[name], strings.TrimSuffix(field+"."+name, ".")
		if err := c.completeRope(&s, at); err != nil {
			return 0, "", err
		}
		switch {
		case scalesContext[s.Type] && s.Factor != nil:
			factor = *s.Factor
			if s.Type == "yarn" {
				whole = *s.Original
			}
		case s.Type == longRope && c.set("original_max_position_embeddings"):
			whole = c.number("original_max_position_embeddings")
			note = fmt.Sprintf("%s.rope_type = %q: a context of original_max_position_embeddings = %.0f "+
				"tokens, as vLLM serves it without --max-model-len, of %.0f", at, longRope, whole, tokens)
		}
	}
	return whole * factor, note, nil
}

// completeRope checks one scaling and replaces an older type name.
func (c rawConfig) completeRope(s *ropeScaling, at string) error {
	if s.Type != "" && s.OldType != "" && s.Type != s.OldType && olderRopeTypes[s.OldType] != s.Type {
		return fmt.Errorf("%s: rope_type = %q and type = %q; leave one out", at, s.Type, s.OldType)
	}
	if s.Type == "" {
		s.Type = s.OldType
	}
	if present, ok := olderRopeTypes[s.Type]; ok {
		s.Type = present
	}
	if s.Type == "" && s.Factor == nil {
		s.Type = "default"
	}
	scales, known := scalesContext[s.Type]
	if s.Original == nil && c.set("original_max_position_embeddings") {
		n := c.number("original_max_position_embeddings")
		s.Original = &n
	}
	switch {
	case s.Type == "":
		return fmt.Errorf("%s.rope_type: missing; a factor alone does not say which context is served",
			at)
	case !known:
		return fmt.Errorf("%s.rope_type = %q: the context that it gives is not known; known: %s", at,
			s.Type, strings.Join(slices.Sorted(maps.Keys(scalesContext)), ", "))
	case !scales || s.Factor == nil && s.Type == "dynamic" && s.Alpha != nil:
		return nil
	case s.Factor == nil || !(*s.Factor >= 1 && *s.Factor <= 1e6):
		return fmt.Errorf("%s.factor: %s needs a number of 1 to 1e6", at, s.Type)
	case s.Type == "yarn" && (s.Original == nil || *s.Original < 1):
		return fmt.Errorf("%s.original_max_position_embeddings: missing; yarn multiplies it by factor",
			at)
	}
	return nil
}

// ropeScalings returns the scalings and their key: one under "", or one for each kind of layer.
func (c rawConfig) ropeScalings() (field string, byLayer map[string]ropeScaling, err error) {
	for _, field = range []string{"rope_scaling", "rope_parameters"} {
		if c.set(field) {
			break
		}
	}
	if !c.set(field) {
		return field, nil, nil
	}
	var keys map[string]json.RawMessage
	if json.Unmarshal(c[field], &keys) != nil {
		return field, nil, fmt.Errorf("%s: want an object, got %s", field, bytes.TrimSpace(c[field]))
	}
	nested := true
	for key := range keys {
		nested = nested && strings.HasSuffix(key, "_attention")
	}
	if nested {
		err = json.Unmarshal(c[field], &byLayer)
	} else {
		var one ropeScaling
		err = json.Unmarshal(c[field], &one)
		byLayer = map[string]ropeScaling{"": one}
	}
	if err != nil {
		return field, nil, fmt.Errorf("%s: want rope_type, factor and "+
			"original_max_position_embeddings as a string and numbers", field)
	}
	return field, byLayer, nil
}
