package latent

import (
	"github.com/sparseserve/sparseserve/cuda/reference"
	"github.com/sparseserve/sparseserve/cuda/weights"
)

// Reference is the random model of a shape in float64, stored as the GPU stores it.
func Reference(s Shape, seed uint64) *reference.Latent {
	m := &reference.Latent{Hidden: s.Hidden, Heads: s.Heads, Rank: s.Rank, QRank: s.QRank,
		Rope: s.Rope, Nope: s.Nope, Value: s.Value, FFN: s.FFN, Vocab: s.Vocab,
		IndexHeads: s.IndexHeads, IndexDim: s.IndexDim, TopK: s.TopK, Eps: float64(float32(eps)),
		InvFreq: s.invFreq(), Round: weights.Half, Layers: make([]reference.LatentLayer, s.Layers)}
	_ = s.each(func(k kind, layer int, t tensorOf) error {
		values := make([]float64, 0, t.rows*t.in)
		for _, h := range s.values(seed, k, layer) {
			values = append(values, h.Float())
		}
		l := &m.Layers[layer]
		*[kinds]*[]float64{
			embed: &m.Embed, norm: &m.Norm, head: &m.Head,
			attnNorm: &l.AttnNorm, qDown: &l.QDown, qNorm: &l.QNorm, qUp: &l.QUp, kvDown: &l.KVDown,
			kvNorm: &l.KVNorm, keyUp: &l.KeyUp, valueUp: &l.ValueUp, out: &l.O, indexQ: &l.IndexQ,
			indexKey: &l.IndexKey, indexNorm: &l.IndexNorm, indexBias: &l.IndexBias,
			indexWeight: &l.IndexWeight, mlpNorm: &l.MLPNorm, gateUp: &l.GateUp, down: &l.Down,
		}[k] = values
		return nil
	})
	return m
}
