package llm

// kvLayers returns the number of layers that keep KV.
func (m *Model) kvLayers() int {
	if m.Drafts {
		return m.Layers + m.MTPLayers
	}
	return m.Layers
}

// ProjectionLinears returns the weights with which an MTP layer projects a token's hidden state and
// the next token's embedding to one vector.
func (m *Model) ProjectionLinears() int64 { return 2 * int64(m.Hidden) * int64(m.Hidden) }

// MTPWeightBytes returns the bytes of the MTP layers (DeepSeek-V3, arXiv 2412.19437, section 2.2).
// Each is a layer like the model's last, a projection, and norms of the projection's inputs and of
// the output. Embedding and LM head are shared with the model.
func (m *Model) MTPWeightBytes() int64 {
	h := int64(m.Hidden)
	narrow, experts := m.AttentionLinears()+m.ProjectionLinears(), int64(0)
	if m.QKVBias {
		narrow += int64((m.QHeads + 2*m.KVHeads) * m.HeadDim)
	}
	if m.RoutesLayer(m.Layers - 1) {
		experts = m.mixtureWeightBytes()
	} else {
		narrow += 3 * h * int64(m.FFN)
	}
	return int64(m.MTPLayers) * (m.narrowBytes(narrow) + experts + 5*h*m.WideBytes())
}

// DraftWeightBytes returns MTPWeightBytes if MTP layers are loaded, else 0.
func (m *Model) DraftWeightBytes() int64 {
	if !m.Drafts {
		return 0
	}
	return m.MTPWeightBytes()
}
