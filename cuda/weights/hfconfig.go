package weights

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/internal/files"
)

// hfConfig holds the fields of config.json that determine a Llama's arithmetic. Pointers
// distinguish an absent value from 0.
type hfConfig struct {
	Architectures []string `json:"architectures"`
	ModelType     string   `json:"model_type"`
	HeadDim       int      `json:"head_dim"`
	Activation    string   `json:"hidden_act"`
	Eps           *float64 `json:"rms_norm_eps"`
	Theta         *float64 `json:"rope_theta"`
	RopeScaling   *hfRope  `json:"rope_scaling"`
	// transformers 5: theta and scaling in one
	RopeParameters *hfRope         `json:"rope_parameters"`
	PartialRotary  *float64        `json:"partial_rotary_factor"`
	AttentionBias  bool            `json:"attention_bias"`
	MLPBias        bool            `json:"mlp_bias"`
	Quantization   json.RawMessage `json:"quantization_config"`
}

type hfRope struct {
	Type            string   `json:"rope_type"`
	OldType         string   `json:"type"` // before transformers 4.43
	Theta           *float64 `json:"rope_theta"`
	Factor          float64  `json:"factor"`
	LowFactor       float64  `json:"low_freq_factor"`
	HighFactor      float64  `json:"high_freq_factor"`
	OriginalContext float64  `json:"original_max_position_embeddings"`
	PartialRotary   *float64 `json:"partial_rotary_factor"`
}

// Defaults of LlamaConfig.
const (
	hfEps   = 1e-6
	hfTheta = 10000
)

// parseConfig reads config.json and returns an error for a model with other arithmetic than a plain
// Llama.
func parseConfig(file string, data []byte) (Config, error) {
	var h hfConfig
	if err := files.ParseJSON(file, data, &h); err != nil {
		return Config{}, err
	}
	if err := h.refuse(); err != nil {
		return Config{}, fmt.Errorf("%s: %w", file, err)
	}
	c := Config{Eps: hfEps, Rope: h.rope()}
	if h.Eps != nil {
		c.Eps = *h.Eps
	}
	if err := c.Rope.validate(); err != nil { // the shape's reader knows more kinds
		return Config{}, fmt.Errorf("%s: %w", file, err)
	}
	var err error
	if c.Model, err = llm.ParseConfig(file, data); err != nil {
		return Config{}, err
	}
	if h.HeadDim == 0 && c.QHeads*c.HeadDim != c.Hidden {
		return Config{}, fmt.Errorf("%s: hidden_size: want a multiple of num_attention_heads = %d where "+
			"head_dim is not given, got %d", file, c.QHeads, c.Hidden)
	}
	if err := c.Validate(); err != nil {
		return Config{}, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

// refuse returns the reason why a model is no Llama in 16 or 32 bits.
func (h *hfConfig) refuse() error {
	isLlama := func(name string) bool { return strings.EqualFold(name, "LlamaForCausalLM") }
	switch {
	case len(h.Architectures) > 0 && !slices.ContainsFunc(h.Architectures, isLlama):
		return fmt.Errorf("architectures: want LlamaForCausalLM, got %s; no other architecture is "+
			"supported", strings.Join(h.Architectures, ", "))
	case len(h.Architectures) == 0 && h.ModelType != "llama":
		return fmt.Errorf("model_type: want llama where architectures is not given, got %q",
			h.ModelType)
	case len(h.Quantization) > 0 && string(h.Quantization) != "null":
		return errors.New("quantization_config: quantised weights are not supported; use the " +
			"model's F16, BF16 or F32 checkpoint")
	case h.AttentionBias:
		return errors.New("attention_bias: Llama's linears have no bias; this model's have")
	case h.MLPBias:
		return errors.New("mlp_bias: Llama's linears have no bias; this model's have")
	case h.Activation != "" && h.Activation != "silu" && h.Activation != "swish":
		return fmt.Errorf("hidden_act: want silu, got %q", h.Activation)
	}
	for _, r := range []*hfRope{h.RopeParameters, h.RopeScaling, {PartialRotary: h.PartialRotary}} {
		if r != nil && r.PartialRotary != nil && *r.PartialRotary != 1 {
			return fmt.Errorf("partial_rotary_factor: want 1, got %g", *r.PartialRotary)
		}
	}
	return nil
}

// rope reads either spelling; Rope.validate checks the values.
func (h *hfConfig) rope() Rope {
	r := Rope{Theta: hfTheta}
	if h.Theta != nil {
		r.Theta = *h.Theta
	}
	s := h.RopeParameters
	if s == nil {
		s = h.RopeScaling
	}
	if s == nil {
		return r
	}
	if s.Theta != nil {
		r.Theta = *s.Theta
	}
	kind := s.Type
	if kind == "" {
		kind = s.OldType
	}
	if kind == "" || kind == "default" {
		return r
	}
	return Rope{Theta: r.Theta, Scaling: Scaling(kind), Factor: s.Factor, LowFactor: s.LowFactor,
		HighFactor: s.HighFactor, OriginalContext: s.OriginalContext}
}
