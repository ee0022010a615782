package patterns

import (
	"github.com/sparseserve/sparseserve/cuda/reference"
	"github.com/sparseserve/sparseserve/cuda/weights"
	"github.com/sparseserve/sparseserve/sim/des"
)

// OfModel returns the query heads of a model, by layer, on a prompt of random tokens: their
// queries and keys, rotated, and values, as the reference computes them on the CPU, exactly. That
// is for tiny models: it keeps eight bytes a weight.
func OfModel(w weights.Source, tokens int, seed uint64) ([][]*Head, error) {
	model, err := weights.Reference(w, reference.Exact)
	if err != nil {
		return nil, err
	}
	c := w.Config()
	rng := des.Rand(seed, "patterns.prompt")
	prompt := make([]int, tokens)
	for i := range prompt {
		prompt[i] = rng.IntN(c.Vocab)
	}
	heads := make([][]*Head, c.Layers)
	for layer := range heads {
		heads[layer] = make([]*Head, c.HeadsQ)
		for i := range heads[layer] {
			heads[layer][i] = &Head{D: c.HeadDim}
		}
	}
	group := c.HeadsQ / c.HeadsKV
	cache := model.NewCache()
	model.Extend(cache, prompt, reference.Selector{Watch: func(_, layer, kv int, query, _ []float64) {
		for i := range group {
			h := heads[layer][kv*group+i]
			h.Q = appendRow(h.Q, query[i*c.HeadDim:][:c.HeadDim])
		}
	}})
	for layer := range heads {
		k, v := cache.Layer(layer)
		for i, h := range heads[layer] {
			kv := i / group
			for t := range tokens {
				at := (t*c.HeadsKV + kv) * c.HeadDim
				h.K = appendRow(h.K, k[at:at+c.HeadDim])
				h.V = appendRow(h.V, v[at:at+c.HeadDim])
			}
		}
	}
	return heads, nil
}

func appendRow(m []float32, row []float64) []float32 {
	for _, x := range row {
		m = append(m, float32(x))
	}
	return m
}
