package weights

import (
	"fmt"

	"github.com/sparseserve/sparseserve/hw/llm"
)

// Config is the shape of a Llama (RMSNorm, rotary embedding, grouped-query attention, SwiGLU, no
// biases) or of such a model with latent attention (MLA) and an indexer (DSA), as DeepSeek-V3.2 has
// them; and the numbers of its arithmetic that no cost depends on.
type Config struct {
	llm.Model
	Eps  float64 // of every norm
	Rope Rope
}

// Attended returns the number of values of a token's attention.
func (c *Config) Attended() int {
	if c.IsLatent() {
		return c.QHeads * c.ValueDim
	}
	return c.QHeads * c.HeadDim
}

// InvFreq returns the angle a token of each rotated pair, in radians.
func (c *Config) InvFreq() []float32 {
	if c.IsLatent() {
		return c.Rope.InvFreq(c.RopeDim)
	}
	return c.Rope.InvFreq(c.HeadDim)
}

// llama2Vocab is the maximum vocabulary of the Llama 2 family.
const llama2Vocab = 50000

// WithDefaults replaces zeros of a bare shape: eps 1e-5, and the rotary base of the family by its
// vocabulary: 10,000 for Llama 2, 500,000 for Llama 3.
func (c Config) WithDefaults() Config {
	if c.Eps == 0 {
		c.Eps = 1e-5
	}
	if c.Rope.Theta == 0 {
		c.Rope.Theta = 500000
		if c.Vocab < llama2Vocab {
			c.Rope.Theta = 10000
		}
	}
	return c
}

// Validate returns an error for the first impossible value.
func (c Config) Validate() error {
	if err := c.Model.Validate(); err != nil {
		return err
	}
	if !(c.Eps >= 0 && c.Eps < 1) { // NaN too
		return fmt.Errorf("rms_norm_eps: want 0 to 1, got %g", c.Eps)
	}
	if c.HeadDim%2 != 0 {
		return fmt.Errorf("head_dim: rotary embedding rotates pairs, got %d", c.HeadDim)
	}
	return c.Rope.validate()
}

// Tensors lists the stored tensors of a model, in the order of a forward pass. A tied head is the
// embedding and not listed.
func (c Config) Tensors() []Tensor {
	all := []Tensor{{Kind: Embed}}
	for layer := range c.Layers {
		for kind := AttnNorm; kind <= Down; kind++ {
			if kind < QKV || kind > IndexWeight || (kind == QKV) == !c.IsLatent() {
				all = append(all, Tensor{kind, layer})
			}
		}
	}
	all = append(all, Tensor{Kind: Norm})
	if !c.TiedEmbeddings {
		all = append(all, Tensor{Kind: Head})
	}
	return all
}
