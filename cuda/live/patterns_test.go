package live_test

import (
	"math"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/cuda/reference"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// addPatterns adds systems with sparse prefill, under every plan of it: of every kind of head,
// within one group of the heads that share a KV head and across groups; and with budgets that cover
// the context, which is dense attention.
func addPatterns(all map[string]*scenario, chunked sim.Spec) {
	vs := func(a, b int) pattern.Head { return pattern.Head{Kind: pattern.VerticalSlash, A: a, B: b} }
	aShape := func(a, b int) pattern.Head { return pattern.Head{Kind: pattern.AShape, A: a, B: b} }
	blocks := func(a int) pattern.Head { return pattern.Head{Kind: pattern.BlockSparse, A: a} }
	offload := func(s *sim.Spec) {
		s.Selection.On, s.Offload.On, s.Selection.SinkBlocks, s.Selection.RecentBlocks = true, true, 1,
			1
	}
	plans := map[string]func(*sim.Spec){
		"chunked":          func(*sim.Spec) {},
		"plain":            func(s *sim.Spec) { s.Prefill.Split, s.MaxTokens = "plain", 400 },
		"offload, chunked": offload,
		"layer": func(s *sim.Spec) {
			offload(s)
			s.Prefill.Split,
				s.Prefill.MaxInject = "layer", 800
		},
		"layer-chunked": func(s *sim.Spec) {
			offload(s)
			s.Prefill.Split, s.Prefill.MaxInject = "layer-chunked", 250
		},
	}
	for plan, change := range plans {
		spec := chunked
		spec.MaxTokens, spec.Prefill.ChunkTokens, spec.MaxRequests = 150, 150, 3
		change(&spec)
		for name, heads := range map[string][]pattern.Head{
			"one of each": {vs(40, 33), aShape(16, 40), blocks(2), vs(60, 31)},
			"everything":  {vs(400, 400), vs(1, 399), blocks(100), aShape(5, 400)},
			"listed":      {vs(33, 40), vs(33, 40), vs(50, 31), blocks(1)},
			"blocks":      {blocks(2), blocks(2), blocks(2), blocks(2)},
			"drawn":       {vs(40, 33), vs(50, 80), vs(50, 80), blocks(1)},
		} {
			if plan != "chunked" && name != "one of each" && name != "everything" {
				continue
			}
			shape := tiny(llm.Model{Layers: 2, Hidden: 64, QHeads: 4, KVHeads: 2, HeadDim: 128,
				FFN: 40, Vocab: 61})
			if name == "listed" {
				shape.KVHeads = 1
			}
			second := slices.Clone(heads)
			slices.Reverse(second)
			all["sparse prefill/"+plan+", "+name] = &scenario{shape: shape, spec: spec,
				kvBytes:  int64(4*16*shape.HeadDim) * int64(60*shape.Layers*shape.KVHeads),
				patterns: [][]pattern.Head{heads, second}, lengths: []length{{301, 3}, {70, 4}, {192, 2}},
				allKeys: name == "everything", drawn: name == "drawn"}
		}
	}
}

// mix is what the server knows of a scenario's heads.
func (c *scenario) mix() *pattern.Mix {
	if c.patterns == nil {
		return nil
	}
	table := make(pattern.Table, len(c.patterns))
	for layer, heads := range c.patterns {
		for _, h := range heads {
			table[layer] = append(table[layer], pattern.Assigned{Head: h})
		}
	}
	mix, err := table.Mix("patterns", len(c.patterns), c.shape.QHeads)
	if err != nil {
		panic(err)
	}
	return mix
}

// prefillKeys are the keys that a query head of a position attended to, by the lists that the
// device built.
type prefillKeys map[place][]int

// listed notes them.
func (r *run) listed(id, layer, from, to int, l *live.PrefillLists) {
	tiles := (to - from + 127) / 128
	for head := l.From; head < l.To; head++ {
		for position := from; position < to; position++ {
			tile, half := (position-from)/128, (position-from)/64%2
			row := (head-l.From)*tiles + tile
			r.prefill[place{id, position, layer, head}] = keysOf(l.Blocks[row*l.BlockStride:],
				l.Columns[row*l.ColumnStride:], l.Counts[4*row:][:4], half, position)
		}
	}
}

// keysOf lists the keys of a row of a half of a tile, ascending.
func keysOf(blocks, columns, n []int32, half, position int) []int {
	starts := slices.Concat(
		blocks[:n[0]],
		[][]int32{blocks[n[0]:][:n[1]], blocks[n[0]+n[1]:][:n[2]]}[half],
	)
	keys := []int{}
	for _, s := range starts {
		for key := int(s); key < min(int(s)+64, position+1); key++ {
			keys = append(keys, key)
		}
	}
	for _, e := range columns[:n[3]] {
		if key := int(e & (1<<30 - 1)); uint32(e)>>(30+half)&1 == 0 && key <= position {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// keys are what the reference attends to: the device's keys, of positions that were prefilled.
func (r *run) keys(id int) func(position, layer, head int) []int {
	return func(position, layer, head int) []int { return r.prefill[place{id, position, layer, head}] }
}

// aShapes adds the keys of heads that no list has.
func (r *run) aShapes(id int) {
	for layer, heads := range r.patterns {
		for _, span := range r.prefilled[[2]int{id, layer}] {
			for head, h := range heads {
				if h.Kind != pattern.AShape {
					continue
				}
				for position := span[0]; position < span[1]; position++ {
					keys := []int{}
					for key := range position + 1 {
						if key < h.A || position-key < h.B {
							keys = append(keys, key)
						}
					}
					r.prefill[place{id, position, layer, head}] = keys
				}
			}
		}
	}
}

// judgePrefill compares the device's chosen keys with the choice of float64 indices of the
// reference's queries and keys. They must agree except for lines and blocks that rounding cannot
// tell apart.
func (r *run) judgePrefill(
	t *testing.T,
	id int,
	cache *reference.LlamaCache,
	queries map[place][]float64,
) {
	t.Helper()
	dim, kvHeads := r.shape.HeadDim, r.shape.KVHeads
	group := r.shape.QHeads / kvHeads
	for layer, heads := range r.patterns {
		k, _ := cache.Layer(layer)
		for head, h := range heads {
			if !h.Kind.Indexed() {
				continue
			}
			same, all := 0, 0
			for _, span := range r.prefilled[[2]int{id, layer}] {
				p := reference.Prefill{Shape: reference.Shape{Batch: 1, HeadsQ: 1, HeadsKV: 1, Dim: dim},
					QTokens: span[1] - span[0], Prefix: span[0], Scale: 1 / math.Sqrt(float64(dim))}
				for i := range span[1] {
					p.K = append(p.K, k[(i*kvHeads+head/group)*dim:][:dim]...)
				}
				for i := span[0]; i < span[1]; i++ {
					q := queries[place{id, i, layer, head / group}]
					p.Q = append(p.Q, q[head%group*dim:][:dim]...)
				}
				want := index(&p, h, r.drawn)
				for i := span[0]; i < span[1]; i++ {
					got, ok := r.prefill[place{id, i, layer, head}]
					if !ok {
						t.Fatalf("request %d, layer %d, head %d, position %d: no lists", id, layer, head, i)
					}
					expected := want(i)
					all += len(expected)
					for _, key := range got {
						if _, found := slices.BinarySearch(expected, key); found {
							same++
						} else {
							all++
						}
					}
				}
			}
			if same < all*97/100 {
				t.Errorf("request %d, layer %d, head %d, %v: %d of %d keys are the reference's",
					id, layer, head, h, same, all)
			}
		}
	}
}

// index returns the keys of a position, ascending, by the reference's index of a chunk.
func index(p *reference.Prefill, h pattern.Head, drawn bool) func(position int) []int {
	total := p.Prefix + p.QTokens
	if h.Kind == pattern.BlockSparse {
		q, k := reference.Pool(p.Q, p.Dim), reference.Pool(p.K, p.Dim)
		return func(position int) []int {
			row := (position - p.Prefix) / 64
			scores := make([]float64, len(k)/p.Dim)
			for b := range scores {
				for d := range p.Dim {
					scores[b] += q[row*p.Dim+d] * k[b*p.Dim+d]
				}
			}
			list := reference.TopBlocks(scores, row, p.QTokens, p.Prefix, h.A)
			return keysOf(list, nil, []int32{int32(len(list)), 0, 0, 0}, 0, position)
		}
	}
	vertical, slash := p.LineWeights(0)
	lines := func(weights []float64, n int) []int32 {
		list := reference.TopK(weights, min(n, total), pattern.KeptLines, 0)
		slices.Sort(list)
		return list
	}
	v, s := lines(vertical, h.A), lines(slash, h.B)
	if drawn {
		v, s = h.Lines(total)
	}
	return func(position int) []int {
		i := position - p.Prefix
		blocks, columns, counts := reference.LinesOfTile(v, s, i/128, p.QTokens, p.Prefix)
		return keysOf(blocks, columns, counts[:], i/64%2, position)
	}
}

// checkDensity wants sparse prefill to leave nothing out, or something.
func (r *run) checkDensity(t *testing.T) {
	t.Helper()
	if r.patterns == nil {
		return
	}
	if d := r.density(); r.allKeys != (d == 1) || d > 1 {
		t.Errorf("prefills attend to %.3f of all keys; all of them: %v", d, r.allKeys)
	}
}

// density is the share of the keys of dense causal attention that prefills attended to.
func (r *run) density() float64 {
	kept, dense := 0, 0
	for at, keys := range r.prefill {
		kept, dense = kept+len(keys), dense+at.position+1
	}
	return float64(kept) / float64(dense)
}
