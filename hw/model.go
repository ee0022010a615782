package hw

import "github.com/sparseserve/sparseserve/sim/kv"

// Model is the shape of one decoder-only transformer with gated FFN.
type Model struct {
	Name       string `toml:"name"`
	Layers     int    `toml:"layers"`
	Hidden     int    `toml:"hidden"`
	QHeads     int    `toml:"q_heads"`
	KVHeads    int    `toml:"kv_heads"`
	HeadDim    int    `toml:"head_dim"`
	FFN        int    `toml:"ffn"`
	Vocab      int    `toml:"vocab"`
	MaxContext int    `toml:"max_context"` // tokens
	// Tokenizer is the family whose token counts the traces give: llama2 | llama3.
	Tokenizer string `toml:"tokenizer"`
	// TiedEmbeddings is whether the LM head shares the embedding's weights.
	TiedEmbeddings bool `toml:"tied_embeddings"`
	QKVBias        bool `toml:"qkv_bias"`
	// WeightBytesEach and KVBytesEach are bytes per weight and per KV element.
	WeightBytesEach int    `toml:"weight_bytes_each"`
	KVBytesEach     int    `toml:"kv_bytes_each"`
	Source          string `toml:"source"`

	Ranks   int `toml:"-" json:"-"` // GPUs that share each layer; 0 and 1: one has all (Shard)
	sampled int // logits that a shard draws tokens from
}

// LayerLinears returns the weights of the four linears of one layer: QKV,
// attention output, gate and up, down.
func (m *Model) LayerLinears() int64 {
	h, q := int64(m.Hidden), int64(m.QHeads*m.HeadDim)
	return m.LayerQKV() + q*h + 3*h*int64(m.FFN)
}

// LayerQKV returns the weights of the first of them.
func (m *Model) LayerQKV() int64 {
	return int64(m.Hidden) *
		int64((m.QHeads+2*m.KVHeads)*m.HeadDim)
}

// LayerWeightBytes returns the bytes of one layer's weights, norms and biases included.
func (m *Model) LayerWeightBytes() int64 {
	weights := m.LayerLinears() + 2*int64(m.Hidden)
	if m.QKVBias {
		weights += int64((m.QHeads + 2*m.KVHeads) * m.HeadDim)
	}
	return weights * int64(m.WeightBytesEach)
}

// WeightBytes returns the bytes of all weights.
func (m *Model) WeightBytes() int64 {
	table := int64(m.Vocab) * int64(m.Hidden)
	outside := table + int64(m.Hidden) // embedding, final norm
	if !m.TiedEmbeddings {
		outside += table
	}
	return int64(m.Layers)*m.LayerWeightBytes() + outside*int64(m.WeightBytesEach)
}

// LayerKVBytesPerToken returns the KV bytes of one token in one layer.
func (m *Model) LayerKVBytesPerToken() int64 {
	return int64(2 * m.KVHeads * m.HeadDim * m.KVBytesEach)
}

// KVBytesPerToken returns the KV bytes of one token over all layers.
func (m *Model) KVBytesPerToken() int64 {
	return int64(m.Layers) * m.LayerKVBytesPerToken()
}

// MetaBytesPerBlock returns the bytes of one block's selection metadata for
// one KV head: two vectors of the head's size (cuboid-mean digest, ArkVale).
func (m *Model) MetaBytesPerBlock() int64 {
	return int64(2 * m.HeadDim * m.KVBytesEach)
}

// Geometry returns the KV cache's shape for blocks of the given tokens.
func (m *Model) Geometry(blockTokens int) kv.Geometry {
	return kv.Geometry{
		Layers:      m.Layers,
		KVHeads:     m.KVHeads,
		BlockTokens: blockTokens,
		BlockBytes:  int64(2 * blockTokens * m.HeadDim * m.KVBytesEach),
		MetaBytes:   m.MetaBytesPerBlock(),
	}
}

// validate returns what is wrong with the first impossible field.
func (m *Model) validate() error {
	for _, f := range []struct {
		key   string
		value int
		most  int
	}{
		{"layers", m.Layers, 1 << 12},
		{"hidden", m.Hidden, 1 << 18},
		{"q_heads", m.QHeads, 1 << 14},
		{"kv_heads", m.KVHeads, 1 << 14},
		{"head_dim", m.HeadDim, 1 << 14},
		{"ffn", m.FFN, 1 << 22},
		{"vocab", m.Vocab, 1 << 24},
		{"max_context", m.MaxContext, 1 << 30},
		{"weight_bytes_each", m.WeightBytesEach, 8},
		{"kv_bytes_each", m.KVBytesEach, 8},
	} {
		if f.value < 1 || f.value > f.most {
			return wrong(f.key, "want 1 to %d, got %d", f.most, f.value)
		}
	}
	if m.QHeads%m.KVHeads != 0 {
		return wrong("kv_heads", "want a divisor of q_heads = %d, got %d", m.QHeads, m.KVHeads)
	}
	if m.Tokenizer != "llama2" && m.Tokenizer != "llama3" {
		return wrong("tokenizer", "want llama2 or llama3, got %q", m.Tokenizer)
	}
	if m.Name == "" {
		return wrong("name", "want a name")
	}
	return nil
}
