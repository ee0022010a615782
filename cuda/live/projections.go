package live

import (
	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/weights"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// Projections prefills a prompt densely and calls see for each layer with the queries, the keys,
// both rotated, and the values of its tokens: [tokens][HeadsQ + 2 HeadsKV][D]. see must not retain
// them.
func Projections(m Machine, w weights.Source, prompt []int32,
	see func(layer int, qkv []cuda.Half) error) error {
	const block = 16
	c, n := w.Config(), len(prompt)
	spec := &sim.Spec{Selection: sim.SelectionSpec{}, BlockTokens: block, MaxRequests: 1,
		MaxTokens: n,
		Prefill:   sim.PrefillSpec{Split: "plain"}}
	geo := kv.Geometry{Layers: c.Layers, KVHeads: c.KVHeads, BlockTokens: block,
		BlockBytes: int64(4 * block * c.HeadDim)}
	var failed error
	cfg := Config{Spec: spec, Geometry: geo, Weights: w,
		KVBytes: 4 * int64(geo.Blocks(n+1)*geo.Groups()) * geo.BlockBytes,
		Prompt:  func(int) []int32 { return prompt },
		Projected: func(layer int, qkv []cuda.Half) {
			if failed == nil {
				failed = see(layer, qkv)
			}
		}}
	if err := Fits(m, cfg, Load{Requests: []int{n + 1}, Prompt: n}, 0); err != nil {
		return err
	}
	d, err := New(m, cfg)
	if err != nil {
		return err
	}
	once := warmUp{d: d, prompt: n, blocks: geo.Blocks(n)}
	row := once.row(0, n)
	row.Emits = true
	err = once.step(row, 0)
	if closing := d.Close(); err == nil {
		err = closing
	}
	if failed != nil {
		return failed
	}
	return err
}

// showProjected passes the layer's queries, keys and values to Config.Projected, if set.
func (d *paged) showProjected(layer int) {
	if d.cfg.Projected == nil {
		return
	}
	values := d.active.tokens * d.model.heads() * d.model.HeadDim
	d.show(d.scratch.qkv.At, 2*int64(values), func(m cuda.HostMemory) {
		d.cfg.Projected(layer, cuda.Slice[cuda.Half](m)[:values])
	})
}
