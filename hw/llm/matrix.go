package llm

// Matrix is a weight Matrix with one row per input and one column per output of a token.
type Matrix struct{ Rows, Columns int }

// WeightsOf returns the number of weights in matrices.
func WeightsOf(ms []Matrix) (n int64) {
	for _, m := range ms {
		n += int64(m.Rows) * int64(m.Columns)
	}
	return n
}

// AttentionMatrices returns the matrices of a layer's attention: QKV or the projections of latent
// attention, and the output.
func (m *Model) AttentionMatrices() []Matrix {
	if !m.IsLatent() {
		return []Matrix{{m.Hidden, (m.QHeads + 2*m.KVHeads) * m.HeadDim},
			{m.QHeads * m.HeadDim, m.Hidden}}
	}
	from := m.QRank // queries come from their own latent, or from the hidden state
	if from == 0 {
		from = m.Hidden
	}
	return []Matrix{{m.Hidden, m.QRank + m.LatentDim()}, {from, m.QHeads * m.HeadDim},
		{m.KVRank, m.QHeads * (m.NopeDim + m.ValueDim)}, {m.QHeads * m.ValueDim, m.Hidden}}
}

// IndexerMatrices returns the matrices of an indexer: queries of all its heads, from the query's
// latent; one key and one weight per head, from the hidden state. Every rank has all of the
// indexer.
func (m *Model) IndexerMatrices() []Matrix {
	if !m.IsIndexed() {
		return nil
	}
	return []Matrix{{m.QRank, m.IndexHeads * m.IndexHeadDim},
		{m.Hidden, m.IndexHeadDim + m.IndexHeads}}
}

// FFNMatrices returns gate with up, and down, of an FFN with the given columns.
func (m *Model) FFNMatrices(columns int) []Matrix {
	return []Matrix{{m.Hidden, 2 * columns}, {columns, m.Hidden}}
}

// LayerMatrices returns the matrices of a layer with its own FFN.
func (m *Model) LayerMatrices() []Matrix {
	return append(m.AttentionMatrices(), m.FFNMatrices(m.FFN)...)
}
