package weights

import "fmt"

// Config is the shape of a Llama: RMSNorm, rotary embedding, grouped-query attention, SwiGLU, no
// biases; or of such a model with latent attention.
type Config struct {
	Layers, Hidden, HeadsQ, HeadsKV, HeadDim, FFN, Vocab int

	MaxContext int     // tokens; 0 is not known
	Tied       bool    // the head is the embedding
	Eps        float64 // of every norm
	Rope       Rope
	Latent     *Latent // nil: grouped-query attention
}

// Latent is the shape of latent attention (MLA) with an indexer (DSA), as DeepSeek-V3.2 has them,
// with HeadsKV = 1 and HeadDim = Nope + Rope. The indexer selects TopK tokens.
type Latent struct {
	Rank, QRank, Rope, Nope, Value int
	TopK, IndexHeads, IndexDim     int
}

// Width returns the number of values in a token's row.
func (l *Latent) Width() int { return l.Rank + l.Rope }

// Attended returns the number of values of a token's attention.
func (c *Config) Attended() int {
	if c.Latent != nil {
		return c.HeadsQ * c.Latent.Value
	}
	return c.HeadsQ * c.HeadDim
}

// InvFreq returns the angle a token of each rotated pair, in radians.
func (c *Config) InvFreq() []float32 {
	if c.Latent != nil {
		return c.Rope.InvFreq(c.Latent.Rope)
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

// Validate returns the first impossible field by the name that config.json gives it.
func (c Config) Validate() error {
	for _, f := range []struct {
		key         string
		value, most int
	}{
		{"num_hidden_layers", c.Layers, 1 << 12},
		{"hidden_size", c.Hidden, 1 << 18},
		{"num_attention_heads", c.HeadsQ, 1 << 14},
		{"num_key_value_heads", c.HeadsKV, 1 << 14},
		{"head_dim", c.HeadDim, 1 << 14},
		{"intermediate_size", c.FFN, 1 << 22},
		{"vocab_size", c.Vocab, 1 << 24},
	} {
		if f.value < 1 || f.value > f.most {
			return fmt.Errorf("%s: want 1 to %d, got %d", f.key, f.most, f.value)
		}
	}
	if c.HeadsQ%c.HeadsKV != 0 {
		return fmt.Errorf("num_key_value_heads: want a divisor of num_attention_heads = %d, got %d",
			c.HeadsQ, c.HeadsKV)
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
			if kind < QKV || kind > IndexWeight || (kind == QKV) == (c.Latent == nil) {
				all = append(all, Tensor{kind, layer})
			}
		}
	}
	all = append(all, Tensor{Kind: Norm})
	if !c.Tied {
		all = append(all, Tensor{Kind: Head})
	}
	return all
}

// Bytes returns the size of all tensors in fp16.
func (c Config) Bytes() int64 {
	total := int64(0)
	for _, t := range c.Tensors() {
		total += 2 * int64(t.Values(c))
	}
	return total
}
