package llm

// Latent is multi-head latent attention (DeepSeek-V2, 2024, section 2.1). Keys and values of all
// heads are projections of one latent vector per token. The KV cache holds the latent and a rotated
// part of the key that all heads share.
type Latent struct {
	// KVRank is the size of the latent; 0: no latent attention.
	KVRank int `toml:"kv_lora_rank" json:",omitempty" range:">= 0, <= 16384"`
	// RopeDim is the rotated part of a key, which all heads share, NopeDim the other part.
	RopeDim  int `toml:"qk_rope_dim" json:",omitempty" with:"kv_lora_rank" range:">= 0, <= 16384"`
	NopeDim  int `toml:"qk_nope_dim" json:",omitempty" with:"kv_lora_rank" range:">= 1, <= 16384"`
	ValueDim int `toml:"v_head_dim" json:",omitempty" with:"kv_lora_rank" range:">= 1, <= 16384"`
	// QRank is the size of the query latent; 0: queries are projections of the hidden state.
	QRank int `toml:"q_lora_rank" json:",omitempty" with:"kv_lora_rank" range:">= 0, <= 16384"`
}

// IsLatent reports whether the KV cache holds latents.
func (m *Model) IsLatent() bool { return m.KVRank > 0 }

// LatentDim returns the size of the dot product of an absorbed query with a row of the cache.
func (l *Latent) LatentDim() int { return l.KVRank + l.RopeDim }

// scaled is the number of values of an FP8 latent that share a float32 scale (FlashMLA, FP8 KV
// cache).
const scaled = 128

// latentRow returns the bytes of a token in one layer. In FP8 the rotated part stays in 16 bits,
// and every 128 values of the latent have a scale.
func (m *Model) latentRow() int64 {
	if m.KVBytesEach == 1 {
		return int64(m.KVRank + 4*(m.KVRank/scaled) + 2*m.RopeDim)
	}
	return int64(m.LatentDim() * m.KVBytesEach)
}

// Indexer is DeepSeek sparse attention (DeepSeek-V3.2-Exp, 2025, section 2.1): a small indexer
// scores every token of the context for the query, and attention reads the best tokens.
type Indexer struct {
	// IndexTopK is the number of tokens that a query attends to; 0: no indexer.
	IndexTopK    int `toml:"index_top_k" json:",omitempty" range:">= 0, <= 1048576"`
	IndexHeads   int `toml:"index_heads" json:",omitempty" with:"index_top_k" range:">= 1, <= 4096"`
	IndexHeadDim int `toml:"index_head_dim" json:",omitempty" with:"index_top_k" range:">= 1, <= 4096"`
	// IndexKeyBytes is the size of a token's cached key: 128 FP8 values and a float32 scale are 132.
	IndexKeyBytes int `toml:"index_key_bytes" json:",omitempty" with:"index_top_k" range:">= 1, <= 16384"`
	// Layers below IndexFirst have their own indexer, and from it on every IndexEvery-th. Other
	// layers reuse the selection of the layer before. 0: each layer has its own.
	IndexFirst int `toml:"index_first" json:",omitempty" with:"index_top_k" range:">= 0, <= layers"`
	IndexEvery int `toml:"index_every" json:",omitempty" with:"index_top_k" range:">= 0, <= layers"`
}

// IsIndexed reports whether an indexer selects the tokens of attention.
func (m *Model) IsIndexed() bool { return m.IndexTopK > 0 }

// SharesIndex reports whether a layer uses the selection of the layer before.
func (m *Model) SharesIndex(layer int) bool {
	return m.IndexEvery > 1 && layer >= m.IndexFirst && (layer-m.IndexFirst+1)%m.IndexEvery != 0
}

// Indexers returns the number of layers with an indexer.
func (m *Model) Indexers() int {
	switch rest := m.Layers - m.IndexFirst; {
	case !m.IsIndexed():
		return 0
	case m.IndexEvery > 1:
		return m.IndexFirst + rest/m.IndexEvery
	}
	return m.Layers
}

// IndexBytesPerToken returns the bytes of one token's index keys over all layers.
func (m *Model) IndexBytesPerToken() int64 {
	return int64(m.Indexers()) * int64(m.IndexKeyBytes)
}

// IndexerLinears returns the number of weights of an indexer.
func (m *Model) IndexerLinears() int64 { return WeightsOf(m.IndexerMatrices()) }
