package patterns

import (
	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/cuda/reference"
	"github.com/sparseserve/sparseserve/cuda/weights"
	"github.com/sparseserve/sparseserve/sim/des"
)

// OfModel returns the query heads of a model, by layer, on a prompt of random tokens: their queries
// and keys (rotated) and values, computed exactly by the CPU reference. It is for tiny models only:
// it holds eight bytes per weight.
func OfModel(w weights.Source, tokens int, seed uint64) ([][]*Head, error) {
	model, err := weights.Reference(w, reference.Exact)
	if err != nil {
		return nil, err
	}
	c := w.Config()
	prompt := make([]int, tokens)
	for i, token := range randomPrompt(&c, tokens, seed) {
		prompt[i] = int(token)
	}
	heads := make([][]*Head, c.Layers)
	for layer := range heads {
		heads[layer] = make([]*Head, c.QHeads)
		for i := range heads[layer] {
			heads[layer][i] = &Head{D: c.HeadDim}
		}
	}
	group := c.QHeads / c.KVHeads
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
				at := (t*c.KVHeads + kv) * c.HeadDim
				h.K = appendRow(h.K, k[at:at+c.HeadDim])
				h.V = appendRow(h.V, v[at:at+c.HeadDim])
			}
		}
	}
	return heads, nil
}

// randomPrompt returns a prompt of random tokens.
func randomPrompt(c *weights.Config, tokens int, seed uint64) []int32 {
	rng := des.Rand(seed, "patterns.prompt")
	prompt := make([]int32, tokens)
	for i := range prompt {
		prompt[i] = int32(rng.IntN(c.Vocab))
	}
	return prompt
}

// OnMachine is OfModel on a live device, in fp16. each receives the heads of one layer at a time.
// The model may be as large as the device's memory.
func OnMachine(m live.Machine, w weights.Source, tokens int, seed uint64,
	each func(heads []*Head) error) error {
	c := w.Config()
	see := func(_ int, qkv []cuda.Half) error { return each(headsOf(&c, tokens, qkv)) }
	return live.Projections(m, w, randomPrompt(&c, tokens, seed), see)
}

// headsOf splits a layer's [tokens][HeadsQ + 2 HeadsKV][D] by query heads. The heads of a group
// share keys and values.
func headsOf(c *weights.Config, tokens int, qkv []cuda.Half) []*Head {
	column := func(head int) []float32 {
		rows := make([]float32, 0, tokens*c.HeadDim)
		for t := range tokens {
			at := (t*(c.QHeads+2*c.KVHeads) + head) * c.HeadDim
			for _, x := range qkv[at:][:c.HeadDim] {
				rows = append(rows, float32(x.Float()))
			}
		}
		return rows
	}
	heads := make([]*Head, c.QHeads)
	for kv := range c.KVHeads {
		k, v := column(c.QHeads+kv), column(c.QHeads+c.KVHeads+kv)
		group := c.QHeads / c.KVHeads
		for i := kv * group; i < (kv+1)*group; i++ {
			heads[i] = &Head{D: c.HeadDim, Q: column(i), K: k, V: v}
		}
	}
	return heads
}

func appendRow(m []float32, row []float64) []float32 {
	for _, x := range row {
		m = append(m, float32(x))
	}
	return m
}
