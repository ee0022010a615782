package hw

// Latent is multi-head latent attention (DeepSeek-V2, 2024, section 2.1). Keys and values of all
// heads are projections of one latent vector per token. The KV cache holds the latent and a rotated
// part of the key that all heads share.
type Latent struct {
	// KVRank is the size of the latent; 0: no latent attention.
	KVRank   int `toml:"kv_lora_rank,omitempty" json:",omitempty"`
	RopeDim  int `toml:"qk_rope_dim,omitempty" json:",omitempty"` // of a key, shared by all heads
	NopeDim  int `toml:"qk_nope_dim,omitempty" json:",omitempty"` // of each head's key, not rotated
	ValueDim int `toml:"v_head_dim,omitempty" json:",omitempty"`
	// QRank is the size of the query latent; 0: queries are projections of the hidden state.
	QRank int `toml:"q_lora_rank,omitempty" json:",omitempty"`
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

func (m *Model) validateLatent() error {
	if !m.IsLatent() {
		for _, f := range []struct {
			key   string
			value int
		}{{"kv_lora_rank", m.KVRank}, {"qk_rope_dim", m.RopeDim}, {"qk_nope_dim", m.NopeDim},
			{"v_head_dim", m.ValueDim}, {"q_lora_rank", m.QRank}} {
			if f.value != 0 {
				return wrong(f.key, "means something with kv_lora_rank above 0 only, got %d", f.value)
			}
		}
		return nil
	}
	for _, f := range []struct {
		key         string
		value, from int
	}{{"kv_lora_rank", m.KVRank, 1}, {"qk_rope_dim", m.RopeDim, 0}, {"qk_nope_dim", m.NopeDim, 1},
		{"v_head_dim", m.ValueDim, 1}, {"q_lora_rank", m.QRank, 0}} {
		if f.value < f.from || f.value > 1<<14 {
			return wrong(f.key, "want %d to %d, got %d", f.from, 1<<14, f.value)
		}
	}
	switch {
	case m.KVHeads != 1:
		return wrong("kv_heads", "want 1 with kv_lora_rank, as all heads share a latent, got %d",
			m.KVHeads)
	case m.HeadDim != m.NopeDim+m.RopeDim:
		return wrong("head_dim", "want qk_nope_dim + qk_rope_dim = %d, got %d", m.NopeDim+m.RopeDim,
			m.HeadDim)
	case m.KVBytesEach == 1 && m.KVRank%scaled != 0:
		return wrong("kv_lora_rank", "want a multiple of %d in FP8 (kv_bytes_each = 1), got %d", scaled,
			m.KVRank)
	case m.QKVBias:
		return wrong("qkv_bias", "want false with kv_lora_rank, got true")
	}
	return nil
}

// Indexer is DeepSeek sparse attention (DeepSeek-V3.2-Exp, 2025, section 2.1): a small indexer
// scores every token of the context for the query, and attention reads the best tokens.
type Indexer struct {
	// IndexTopK is the number of tokens that a query attends to; 0: no indexer.
	IndexTopK    int `toml:"index_top_k,omitempty" json:",omitempty"`
	IndexHeads   int `toml:"index_heads,omitempty" json:",omitempty"`
	IndexHeadDim int `toml:"index_head_dim,omitempty" json:",omitempty"`
	// IndexKeyBytes is the size of a token's cached key: 128 FP8 values and a float32 scale are 132.
	IndexKeyBytes int `toml:"index_key_bytes,omitempty" json:",omitempty"`
	// Layers below IndexFirst have their own indexer, and from it on every IndexEvery-th. Other
	// layers reuse the selection of the layer before. 0: each layer has its own.
	IndexFirst int `toml:"index_first,omitempty" json:",omitempty"`
	IndexEvery int `toml:"index_every,omitempty" json:",omitempty"`
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

// indexerLinears returns the number of weights of an indexer.
func (m *Model) indexerLinears() int64 { return weightsOf(m.indexerMatrices()) }

func (m *Model) validateIndexer() error {
	from := 1
	if !m.IsIndexed() {
		from = 0
	}
	for _, f := range []struct {
		key         string
		value, from int
		most        int
	}{
		{"index_top_k", m.IndexTopK, from, 1 << 20}, {"index_heads", m.IndexHeads, from, 1 << 12},
		{"index_head_dim", m.IndexHeadDim, from, 1 << 12},
		{"index_key_bytes", m.IndexKeyBytes, from, 1 << 14},
		{"index_first", m.IndexFirst, 0, m.Layers}, {"index_every", m.IndexEvery, 0, m.Layers},
	} {
		switch {
		case f.value < f.from || f.value > f.most:
			return wrong(f.key, "want %d to %d, got %d", f.from, f.most, f.value)
		case f.value > 0 && !m.IsIndexed():
			return wrong(f.key, "means something with index_top_k above 0 only, got %d", f.value)
		}
	}
	switch {
	case m.IsIndexed() && (!m.IsLatent() || m.QRank == 0):
		return wrong("index_top_k", "want kv_lora_rank and q_lora_rank with an indexer")
	case m.IndexEvery > 1 && m.IndexFirst == 0:
		return wrong("index_first", "want 1 or more with index_every = %d, as the first layer has none "+
			"before it", m.IndexEvery)
	}
	return nil
}
