package reference

import "math"

// Llama is a whole model. Linears are [out][in], row-major; with Dim = values per head and G =
// HeadsQ / HeadsKV:
//
//	x = embed[token]
//	each layer:  x += o attention(rope(qkv norm(x)))
//	             x += down (silu(gate u) * up u), u = norm(x)
//	logits = head norm(x)
//
// Round is applied where the GPU and HuggingFace's fp16 model store a value: after the embedding,
// each norm (twice, see RMSNorm), each linear, each step of the rotation, attention, the
// activation, each residual sum. Exact gives the model itself.
type Llama struct {
	Body
	HeadsQ, HeadsKV, Dim int
	Layers               []LlamaLayer
}

// LlamaLayer holds one layer's weights.
type LlamaLayer struct {
	AttnNorm []float64 // [Hidden]
	QKV      []float64 // [(HeadsQ + 2 HeadsKV) Dim][Hidden]
	O        []float64 // [Hidden][HeadsQ Dim]
	MLP
}

// Selector restricts attention. The zero value is dense.
type Selector struct {
	BlockTokens int
	// Blocks returns the logical blocks that the token at a position attends to, for all query
	// heads of a KV head; nil is dense. Block b has tokens b BlockTokens to (b + 1) BlockTokens -
	// 1, up to the position.
	Blocks func(position, layer, kvHead int) []int
	// Keys returns the positions that one query head of the token at a position attends to; nil uses
	// Blocks.
	Keys func(position, layer, head int) []int
	// Watch, if not nil, receives the inputs of a KV head's attention: queries [HeadsQ /
	// HeadsKV][Dim] and the keys so far, [tokens][HeadsKV][Dim].
	Watch func(position, layer, kvHead int, query, keys []float64)
}

// LlamaCache holds the rotated keys and the values of the tokens so far.
type LlamaCache struct {
	tokens int
	k, v   [][]float64 // of each layer: [tokens][HeadsKV][Dim]
}

// Tokens returns the number of cached tokens, which is the position of the next.
func (c *LlamaCache) Tokens() int { return c.tokens }

// Layer returns the keys, rotated, and the values of a layer: [tokens][HeadsKV][Dim].
func (c *LlamaCache) Layer(layer int) (k, v []float64) { return c.k[layer], c.v[layer] }

// NewCache returns an empty cache.
func (m *Llama) NewCache() *LlamaCache {
	return &LlamaCache{k: make([][]float64, len(m.Layers)), v: make([][]float64, len(m.Layers))}
}

// Forward returns the logits [token][Vocab] of a sequence.
func (m *Llama) Forward(tokens []int, sel Selector) [][]float64 {
	return m.Extend(m.NewCache(), tokens, sel)
}

// Extend appends tokens to a sequence, layer by layer, and returns their logits.
func (m *Llama) Extend(c *LlamaCache, tokens []int, sel Selector) [][]float64 {
	x := m.Embedded(tokens)
	for layer := range m.Layers {
		m.layer(c, layer, x, sel)
	}
	c.tokens += len(tokens)
	return m.Logits(x)
}

// Greedy returns the n tokens that follow the prompt, each the likeliest.
func (m *Llama) Greedy(prompt []int, n int) []int {
	return m.GreedySelected(prompt, n, Selector{})
}

// GreedySelected is Greedy with sparse attention of the generated tokens; the prompt's is dense.
func (m *Llama) GreedySelected(prompt []int, n int, sel Selector) []int {
	c := m.NewCache()
	logits := m.Extend(c, prompt, Selector{})
	var out []int
	for range n {
		next := Argmax(logits[len(logits)-1])
		out = append(out, next)
		if len(out) < n {
			logits = m.Extend(c, []int{next}, sel)
		}
	}
	return out
}

// layer adds attention and FFN to the residual stream x [tokens][Hidden], in place.
func (m *Llama) layer(c *LlamaCache, layer int, x [][]float64, sel Selector) {
	w := &m.Layers[layer]
	queries := make([][]float64, len(x))
	for i := range x {
		qkv := Linear(w.QKV, RMSNorm(x[i], w.AttnNorm, m.Eps, m.Round), m.Round)
		rotated := m.HeadsQ + m.HeadsKV
		for head := range rotated {
			at := qkv[head*m.Dim:][:m.Dim]
			copy(at, Rope(at, m.Angles(c.tokens+i), m.Round))
		}
		queries[i] = qkv[:m.HeadsQ*m.Dim]
		c.k[layer] = append(c.k[layer], qkv[m.HeadsQ*m.Dim:rotated*m.Dim]...)
		c.v[layer] = append(c.v[layer], qkv[rotated*m.Dim:]...)
	}
	for i := range x {
		attended := Rounded(m.attend(c, layer, c.tokens+i, queries[i], sel), m.Round)
		m.AddTo(x[i], Linear(w.O, attended, m.Round))
		m.AddMLP(x[i], &w.MLP)
	}
}

// attend returns attention [HeadsQ][Dim] of the token at a position to itself and to earlier
// tokens.
func (m *Llama) attend(c *LlamaCache, layer, position int, query []float64,
	sel Selector) []float64 {
	out := make([]float64, m.HeadsQ*m.Dim)
	group := m.HeadsQ / m.HeadsKV
	scale := 1 / math.Sqrt(float64(m.Dim))
	for kv := range m.HeadsKV {
		seen := sel.tokens(position, layer, kv)
		if sel.Watch != nil {
			sel.Watch(position, layer, kv, query[kv*group*m.Dim:(kv+1)*group*m.Dim],
				c.k[layer][:(position+1)*m.HeadsKV*m.Dim])
		}
		for head := kv * group; head < (kv+1)*group; head++ {
			state := NewSoftmax(m.Dim)
			for _, t := range sel.keys(position, layer, head, seen) {
				at := (t*m.HeadsKV + kv) * m.Dim
				state.Add(scale*dot(query[head*m.Dim:][:m.Dim], c.k[layer][at:]),
					c.v[layer][at:at+m.Dim])
			}
			state.Result(out[head*m.Dim:][:m.Dim])
		}
	}
	return out
}

// keys returns the positions that a query head attends to if its KV head attends to seen.
func (s Selector) keys(position, layer, head int, seen []int) []int {
	if s.Keys != nil {
		if own := s.Keys(position, layer, head); own != nil {
			return own
		}
	}
	return seen
}

// tokens returns the positions that a token attends to.
func (s Selector) tokens(position, layer, kvHead int) []int {
	first, count := []int{0}, position+1 // dense: one block of all
	if s.Blocks != nil {
		if blocks := s.Blocks(position, layer, kvHead); blocks != nil {
			first, count = first[:0], s.BlockTokens
			for _, b := range blocks {
				first = append(first, b*s.BlockTokens)
			}
		}
	}
	var all []int
	for _, from := range first {
		for t := from; t < min(from+count, position+1); t++ {
			all = append(all, t)
		}
	}
	return all
}
