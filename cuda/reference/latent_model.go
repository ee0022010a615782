package reference

import "math"

// Latent is a whole model with latent attention (MLA) and an indexer (DSA), as DeepSeek-V3.2 has
// them, and a dense MLP in every layer. Linears are [out][in]; norm is RMSNorm, row and key are
// LatentRow and IndexKey:
//
//	each layer:  u = norm(x), c = norm(qDown u)
//	             row = LatentRow(kvDown u), key = IndexKey(indexKey u)     kept of each token
//	             q = qUp c, of each head nope values and rope rotated; iq = indexQ c, rotated
//	             selected = the TopK best of IndexScores(iq, indexWeight u, keys)
//	             x += o valueUp attention(keyUp q, rows of selected)
//	             x += down (silu(gate v) * up v), v = norm(x)
//
// Round is applied where the GPU stores a value.
type Latent struct {
	Body
	Heads, Rank, Rope, Nope, Value int
	IndexHeads, IndexDim, TopK     int
	Layers                         []LatentLayer
}

// LatentLayer holds one layer's weights.
type LatentLayer struct {
	AttnNorm, QDown, QNorm []float64 // [Hidden], [QRank][Hidden], [QRank]
	QUp                    []float64 // [Heads (Nope + Rope)][QRank]
	KVDown, KVNorm         []float64 // [Rank + Rope][Hidden], [Rank]
	KeyUp, ValueUp         []float64 // [Heads][Rank][Nope], [Heads][Value][Rank]
	O                      []float64 // [Hidden][Heads Value]
	IndexQ, IndexKey       []float64 // [IndexHeads IndexDim][QRank], [IndexDim][Hidden]
	IndexNorm, IndexBias   []float64 // [IndexDim]
	IndexWeight            []float64 // [IndexHeads][Hidden]
	MLP
}

// TokenSelector returns the tokens that a token attends to, given the indexer's scores up to and
// including it; nil selects the TopK best.
type TokenSelector func(position, layer int, scores []float64) []int32

// Forward returns the logits [token][Vocab] of a sequence.
func (m *Latent) Forward(tokens []int, choose TokenSelector) [][]float64 {
	x := m.embed(tokens)
	for layer := range m.Layers {
		m.layer(layer, x, choose)
	}
	return m.logits(x)
}

func (m *Latent) layer(number int, x [][]float64, choose TokenSelector) {
	w := &m.Layers[number]
	var rows, keys []float64
	for i := range x {
		angle := m.angles(i)
		u := RMSNorm(x[i], w.AttnNorm, m.Eps, m.Round)
		rows = append(rows, LatentRow(linear(w.KVDown, u, m.Round), w.KVNorm, angle, m.Eps, m.Round)...)
		keys = append(keys, IndexKey(linear(w.IndexKey, u, m.Round), w.IndexNorm, w.IndexBias, angle,
			m.Eps, m.Round)...)
		c := RMSNorm(linear(w.QDown, u, m.Round), w.QNorm, m.Eps, m.Round)
		list := m.selects(number, i, w, u, c, angle, keys, choose)
		attended := m.attend(w, linear(w.QUp, c, m.Round), angle, rows, list)
		m.residual(x[i], linear(w.O, attended, m.Round))
		m.mlp(x[i], &w.MLP)
	}
}

// selects returns the tokens that the indexer selects.
func (m *Latent) selects(layer, position int, w *LatentLayer, u, c, angle, keys []float64,
	choose TokenSelector) []int32 {
	q := linear(w.IndexQ, c, m.Round)
	for h := range m.IndexHeads {
		RopePart(q[h*m.IndexDim:][:2*len(angle)], angle, m.Round)
	}
	scores := IndexScores(q, linear(w.IndexWeight, u, m.Round), keys,
		1/math.Sqrt(float64(m.IndexHeads*m.IndexDim)))
	if choose != nil {
		return choose(position, layer, scores)
	}
	return TopK(scores, m.TopK, 0, 0)
}

// attend returns attention [Heads][Value] of one token's queries to the listed rows.
func (m *Latent) attend(w *LatentLayer, q, angle, rows []float64, list []int32) []float64 {
	head := m.Nope + m.Rope
	var out []float64
	for h := range m.Heads {
		own := q[h*head:][:head]
		RopePart(own[m.Nope:], angle, m.Round)
		latent := linear(w.KeyUp[h*m.Rank*m.Nope:][:m.Rank*m.Nope], own[:m.Nope], m.Round)
		sum := LatentAttend(latent, own[m.Nope:], rows, list, 1/math.Sqrt(float64(head)))
		out = append(out, linear(w.ValueUp[h*m.Value*m.Rank:][:m.Value*m.Rank],
			rounded(sum, m.Round), m.Round)...)
	}
	return out
}
