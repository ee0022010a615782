package hw

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
