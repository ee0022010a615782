package hw

// matrix is a weight matrix: rows are the inputs, columns the outputs of a token.
type matrix struct{ rows, columns int }

// weightsOf returns how many weights matrices have.
func weightsOf(ms []matrix) (n int64) {
	for _, m := range ms {
		n += int64(m.rows) * int64(m.columns)
	}
	return n
}

// attentionMatrices are those of a layer's attention: QKV or what latent attention has in its
// place, and the output.
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

// indexerMatrices are those of an indexer: queries of all its heads from the query's latent, one
// key and a weight a head from the hidden state. Every rank has all of them.
func (m *Model) indexerMatrices() []matrix {
	if !m.IsIndexed() {
		return nil
	}
	return []matrix{{m.QRank, m.IndexHeads * m.IndexHeadDim},
		{m.Hidden, m.IndexHeadDim + m.IndexHeads}}
}

// ffnMatrices are gate and up, and down, of an FFN of so many columns.
func (m *Model) ffnMatrices(columns int) []matrix {
	return []matrix{{m.Hidden, 2 * columns}, {columns, m.Hidden}}
}

// layerMatrices are those that every token of a layer with an FFN of its own is multiplied with.
func (m *Model) layerMatrices() []matrix {
	return append(m.attentionMatrices(), m.ffnMatrices(m.FFN)...)
}

// matricesOf are those of a layer of a class.
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
