package hw

import "github.com/sparseserve/sparseserve/sim"

// Single cost models of a profile, in seconds, as Device combines them: for
// calibration, which compares them with measurements, and for plots.

// LoadSeconds returns the time in which an engine loads blocks from a host
// pool of the given size.
func (p *Profile) LoadSeconds(engine string, blocks, blockBytes, poolBytes int64) (float64, error) {
	l, err := newLoader(p, engine)
	if err != nil {
		return 0, err
	}
	l.over(poolBytes)
	return l.seconds(blocks, blockBytes), nil
}

// SaveSeconds returns the time in which an engine saves blocks to a host pool
// of the given size; threads are FlashD2H's, 0 for the profile's own.
func (p *Profile) SaveSeconds(engine string, blocks, blockBytes, poolBytes int64, threads int) (float64, error) {
	s, _, err := newSaver(p, engine, threads)
	if err != nil {
		return 0, err
	}
	s.over(poolBytes)
	return s.seconds(blocks, blockBytes), nil
}

// OverlappedSaveSeconds is SaveSeconds while prefill is computed.
func (p *Profile) OverlappedSaveSeconds(engine string, blocks, blockBytes, poolBytes int64, threads int) (float64, error) {
	_, s, err := newSaver(p, engine, threads)
	if err != nil {
		return 0, err
	}
	s.over(poolBytes)
	return s.seconds(blocks, blockBytes), nil
}

// LinearsSeconds returns the time of one layer's linears.
func (p *Profile) LinearsSeconds(m *Model, tokens int) float64 {
	l := newLinears(p, m)
	t, _ := l.seconds(float64(tokens))
	return t
}

// PointwiseSeconds returns the time of one layer's norms, rope and activation.
func (p *Profile) PointwiseSeconds(m *Model, tokens int) float64 {
	w := newPointwise(p, m)
	t, _ := w.seconds(float64(tokens))
	return t
}

// HeadSeconds returns the time of the embedding of some tokens, and of the LM
// head and the choice of a token for those of them that emit one.
func (p *Profile) HeadSeconds(m *Model, tokens, sampled int) float64 {
	h := newLMHead(p, m)
	return h.seconds(tokens, sampled)
}

// PrefillSeconds returns the time of one layer's prefill attention.
func (p *Profile) PrefillSeconds(m *Model, spans ...sim.Span) float64 {
	a := newPrefillAttention(p, m)
	t, _ := a.seconds(spans)
	return t
}

// PrefillFLOPs returns what one layer's attention of a chunk computes.
func PrefillFLOPs(m *Model, span sim.Span) float64 {
	a := prefillAttention{flops: 4 * float64(m.HeadDim*m.QHeads)}
	return a.spanFLOPs(span)
}

// DenseDecodeSeconds returns the time of one layer's decode attention to kv
// tokens, summed over requests.
func (p *Profile) DenseDecodeSeconds(m *Model, kv int64, requests int) float64 {
	k := newDense(p, m)
	t, _ := k.seconds(float64(kv), float64(requests))
	return t
}

// SparseDecodeSeconds returns the time of one layer's decode attention to kv
// selected tokens, summed over requests.
func (p *Profile) SparseDecodeSeconds(m *Model, kv int64, requests int) float64 {
	k := newSparse(p, m)
	t, _ := k.seconds(float64(kv), float64(requests))
	return t
}

// ScoringSeconds returns the time in which one layer scores blocks and selects
// from them; blocks are summed over requests.
func (p *Profile) ScoringSeconds(m *Model, blocks int64, requests int) float64 {
	k := newScoring(p, m)
	t, _ := k.seconds(float64(blocks), float64(requests))
	return t
}

// HostStepSeconds returns the host's time of a step, layers apart.
func (p *Profile) HostStepSeconds(requests int64) float64 {
	return p.Host.Step.SI() + float64(requests)*p.Host.Request.optional()
}
