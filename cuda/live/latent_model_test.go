package live_test

import (
	"math"

	"github.com/sparseserve/sparseserve/cuda/reference"
)

// latentModel is a whole model with latent attention (MLA) and an indexer (DSA), as DeepSeek-V3.2
// has them, and a dense MLP in every layer. Linears are [out][in]; norm is reference.RMSNorm:
//
//	each layer:  u = norm(x), c = norm(qDown u)
//	             row = LatentRow(kvDown u), key = IndexKey(indexKey u)     kept of each token
//	             q = qUp c, of each head nope values and rope rotated; iq = indexQ c, rotated
//	             selected = the TopK best of IndexScores(iq, indexWeight u, keys)
//	             x += o valueUp attention(keyUp q, rows of selected)
//	             x += down (silu(gate v) * up v), v = norm(x)
//
// Round is applied where the GPU stores a value.
type latentModel struct {
	reference.Body
	Heads, Rank, Rope, Nope, Value int
	IndexHeads, IndexDim, TopK     int
	Layers                         []latentLayer
}

// latentLayer holds one layer's weights.
type latentLayer struct {
	AttnNorm, QDown, QNorm []float64 // [Hidden], [QRank][Hidden], [QRank]
	QUp                    []float64 // [Heads (Nope + Rope)][QRank]
	KVDown, KVNorm         []float64 // [Rank + Rope][Hidden], [Rank]
	KeyUp, ValueUp         []float64 // [Heads][Rank][Nope], [Heads][Value][Rank]
	O                      []float64 // [Hidden][Heads Value]
	IndexQ, IndexKey       []float64 // [IndexHeads IndexDim][QRank], [IndexDim][Hidden]
	IndexNorm, IndexBias   []float64 // [IndexDim]
	IndexWeight            []float64 // [IndexHeads][Hidden]
	reference.MLP
}

// tokenSelector returns the tokens that a token attends to, given the indexer's scores up to and
// including it; nil selects the TopK best.
type tokenSelector func(position, layer int, scores []float64) []int32

// Forward returns the logits [token][Vocab] of a sequence.
func (m *latentModel) Forward(tokens []int, choose tokenSelector) [][]float64 {
	x := m.Embedded(tokens)
	for layer := range m.Layers {
		m.layer(layer, x, choose)
	}
	return m.Logits(x)
}

func (m *latentModel) layer(number int, x [][]float64, choose tokenSelector) {
	w := &m.Layers[number]
	var rows, keys []float64
	for i := range x {
		angle := m.Angles(i)
		u := reference.RMSNorm(x[i], w.AttnNorm, m.Eps, m.Round)
		rows = append(rows, reference.LatentRow(reference.Linear(w.KVDown, u, m.Round), w.KVNorm, angle,
			m.Eps, m.Round)...)
		keys = append(keys, reference.IndexKey(reference.Linear(w.IndexKey, u, m.Round), w.IndexNorm,
			w.IndexBias, angle, m.Eps, m.Round)...)
		c := reference.RMSNorm(reference.Linear(w.QDown, u, m.Round), w.QNorm, m.Eps, m.Round)
		list := m.selects(number, i, w, u, c, angle, keys, choose)
		attended := m.attend(w, reference.Linear(w.QUp, c, m.Round), angle, rows, list)
		m.AddTo(x[i], reference.Linear(w.O, attended, m.Round))
		m.AddMLP(x[i], &w.MLP)
	}
}

// selects returns the tokens that the indexer selects.
func (m *latentModel) selects(layer, position int, w *latentLayer, u, c, angle, keys []float64,
	choose tokenSelector) []int32 {
	q := reference.Linear(w.IndexQ, c, m.Round)
	for h := range m.IndexHeads {
		reference.RopePart(q[h*m.IndexDim:][:2*len(angle)], angle, m.Round)
	}
	scores := reference.IndexScores(q, reference.Linear(w.IndexWeight, u, m.Round), keys,
		1/math.Sqrt(float64(m.IndexHeads*m.IndexDim)))
	if choose != nil {
		return choose(position, layer, scores)
	}
	return reference.TopK(scores, m.TopK, 0, 0)
}

// attend returns attention [Heads][Value] of one token's queries to the listed rows.
func (m *latentModel) attend(w *latentLayer, q, angle, rows []float64, list []int32) []float64 {
	head := m.Nope + m.Rope
	var out []float64
	for h := range m.Heads {
		own := q[h*head:][:head]
		reference.RopePart(own[m.Nope:], angle, m.Round)
		latent := reference.Linear(w.KeyUp[h*m.Rank*m.Nope:][:m.Rank*m.Nope], own[:m.Nope], m.Round)
		sum := reference.LatentAttend(latent, own[m.Nope:], rows, list, 1/math.Sqrt(float64(head)))
		out = append(out, reference.Linear(w.ValueUp[h*m.Value*m.Rank:][:m.Value*m.Rank],
			reference.Rounded(sum, m.Round), m.Round)...)
	}
	return out
}
