package weights

import (
	"fmt"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/reference"
)

// Reference reads a whole model into float64 for the reference: eight bytes a weight, for tiny
// models. Round is cuda.Rounded for what the GPU computes, reference.Exact for the model itself.
func Reference(s Source, round reference.Round) (*reference.Llama, error) {
	c := s.Config()
	m := &reference.Llama{HeadsQ: c.QHeads, HeadsKV: c.KVHeads, Dim: c.HeadDim,
		Body:   reference.Body{Eps: c.Eps, InvFreq: c.InvFreq(), Round: round},
		Layers: make([]reference.LlamaLayer, c.Layers)}
	for _, t := range c.Tensors() {
		half := make([]cuda.Half, t.Values(c))
		if err := s.Read(t, half); err != nil {
			return nil, fmt.Errorf("reference: %w", err)
		}
		*place(m, t) = cuda.Floats(half)
	}
	if c.TiedEmbeddings {
		m.Head = m.Embed
	}
	return m, nil
}

// place is where the reference keeps a tensor.
func place(m *reference.Llama, t Tensor) *[]float64 {
	switch t.Kind {
	case Embed:
		return &m.Embed
	case Norm:
		return &m.Norm
	case Head:
		return &m.Head
	}
	layer := &m.Layers[t.Layer]
	return [Kinds]*[]float64{AttnNorm: &layer.AttnNorm, QKV: &layer.QKV, O: &layer.O,
		MLPNorm: &layer.MLPNorm, GateUp: &layer.GateUp, Down: &layer.Down}[t.Kind]
}
