package hw

// matrix is a weight matrix with one row per input and one column per output of a token.
type matrix struct{ rows, columns int }

// weightsOf returns the number of weights in matrices.
func weightsOf(ms []matrix) (n int64) {
	for _, m := range ms {
		n += int64(m.rows) * int64(m.columns)
	}
	return n
}

// attentionMatrices returns the matrices of a layer's attention: QKV or the projections of latent
// attention, and the output.
func (m *Model) attentionMatrices() []matrix {
	if !m.IsLatent() {
		return []matrix{{m.Hidden, (m.QHeads + 2*m.KVHeads) * m.HeadDim},
			{m.QHeads * m.HeadDim, m.Hidden}}
	}
	from := m.QRank // queries come from their own latent, or from the hidden state
	if from == 0 {
		from = m.Hidden
	}
	return []matrix{{m.Hidden, m.QRank + m.LatentDim()}, {from, m.QHeads * m.HeadDim},
		{m.KVRank, m.QHeads * (m.NopeDim + m.ValueDim)}, {m.QHeads * m.ValueDim, m.Hidden}}
}

// indexerMatrices returns the matrices of an indexer: queries of all its heads, from the query's
// latent; one key and one weight per head, from the hidden state. Every rank has all of the
// indexer.
func (m *Model) indexerMatrices() []matrix {
	if !m.IsIndexed() {
		return nil
	}
	return []matrix{{m.QRank, m.IndexHeads * m.IndexHeadDim},
		{m.Hidden, m.IndexHeadDim + m.IndexHeads}}
}

// ffnMatrices returns gate with up, and down, of an FFN with the given columns.
func (m *Model) ffnMatrices(columns int) []matrix {
	return []matrix{{m.Hidden, 2 * columns}, {columns, m.Hidden}}
}

// layerMatrices returns the matrices of a layer with its own FFN.
func (m *Model) layerMatrices() []matrix {
	return append(m.attentionMatrices(), m.ffnMatrices(m.FFN)...)
}

// matricesOf returns the matrices of a layer of class c, without routed experts.
func (m *Model) matricesOf(c layerClass) []matrix {
	all := m.attentionMatrices()
	if c.index {
		all = append(all, m.indexerMatrices()...)
	}
	switch {
	case !c.routed:
		return append(all, m.ffnMatrices(m.FFN)...)
	case m.SharedExperts > 0:
		all = append(all, m.ffnMatrices(m.SharedExperts*m.ExpertFFN/m.spread())...)
	}
	return append(all, matrix{m.Hidden, m.Experts}) // the router
}
