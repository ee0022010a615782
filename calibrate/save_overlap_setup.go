package calibrate

import (
	"fmt"
	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/hw"
	"slices"
)

// layerOp readies the linears and the attention of one chunk in one layer.
func (g *gpuBench) layerOp(s *cuda.Session, m *hw.Model, tokens, prefix int64) ([]cuda.Operation, func(*cuda.Session) error, error) {
	calls, verify, err := g.linearsOp(s, m, tokens)
	if err != nil {
		return nil, nil, err
	}
	more, verifyMore, err := g.prefillOp(s, m, []chunkSpan{{tokens, prefix}})
	return append(calls, more...), both(verify, verifyMore), err
}

func both(a, b func(*cuda.Session) error) func(*cuda.Session) error {
	return func(s *cuda.Session) error {
		if err := a(s); err != nil {
			return err
		}
		return b(s)
	}
}

// layersOp readies a chunk in some layers, one after another without pause.
func (g *gpuBench) layersOp(s *cuda.Session, m *hw.Model, tokens, prefix int64) (*setup, error) {
	layer, verify, err := g.layerOp(s, m, tokens, prefix)
	if err != nil {
		return nil, err
	}
	return &setup{
		bench: cuda.Bench{Calls: slices.Repeat(layer, besideRepeats)}, verify: verify, settle: 2 * settled,
		each: func(sample, _ float64) float64 { return sample / besideRepeats },
	}, nil
}

// What the serving loop does beside saving prefill's KV.
const (
	saveBuffer    = 256 * mib
	layerLaunches = 9 // calls beside linears, attention and the kernel that carries lists: 15 in all
	layerLists    = 16 * kib
)

// setupLayers readies the prefill of a chunk in some layers, the KV of each
// saved in blocks when it is computed. probePrefillMemcpy saves from and to where
// the serving loop does, each layer from the next part of the save buffer to blocks
// of its own, since the same ones again stay in the caches on their way. It makes
// the loop's calls: those that are not here otherwise are empty kernels, as their
// computation is a small part.
func (g *gpuBench) setupLayers(s *cuda.Session, p Point) (*setup, error) {
	m, err := shapeModel(p.Shape)
	if err != nil {
		return nil, err
	}
	chunk := p.At("chunk_tokens")
	layer, verify, err := g.layerOp(s, m, chunk, p.At("prefix_tokens"))
	if err != nil {
		return nil, err
	}
	t := &setup{verify: verify, settle: settled, layers: &cuda.Layers{Compute: layer, Layers: int(p.At("layers"))}}
	engine := map[string]string{
		probeLayersMemcpy: probeSaveMemcpy, probeLayersGPU: probeSaveGPU, probePrefillMemcpy: probeSaveMemcpy,
	}[p.Probe]
	if engine == "" {
		return t, nil
	}
	count, block := chunk/blockTokens, m.Geometry(blockTokens).BlockBytes
	if p.Probe != probePrefillMemcpy {
		op, moved, err := g.saveOp(s, engine, count*int64(m.KVHeads), block, basePool*mib, g.spareThreads)
		if err != nil {
			return nil, err
		}
		t.layers.Save, t.verify = []cuda.Operation{op}, both(verify, moved)
		return t, nil
	}
	to, err := g.pagePlaces(s, int64(m.Layers), p.At("layers"), int64(m.KVHeads), count, block, p.At("pool_mib")*mib)
	if err != nil {
		return nil, err
	}
	layerBytes := count * int64(m.KVHeads) * block
	buffer, err := g.random(s, saveBuffer/2)
	if err != nil {
		return nil, err
	}
	if layerBytes > saveBuffer {
		return nil, fmt.Errorf("a layer's saves of %d bytes do not fit the save buffer of %d", layerBytes, int64(saveBuffer))
	}
	t.layers.Each, t.layers.Buffered = 1, int(saveBuffer/layerBytes)
	for i := range to {
		op, moved, err := g.saveFrom(s, engine, buffer+cuda.Ptr(int64(i%t.layers.Buffered)*layerBytes), to[i], block, 0)
		if err != nil {
			return nil, err
		}
		t.layers.Save = append(t.layers.Save, op)
		if i == 0 || i == len(to)-1 {
			t.verify = both(t.verify, moved)
		}
	}
	lists, err := g.poisoned(s, layerLists)
	if err != nil {
		return nil, err
	}
	host, _ := g.pool.at(0)
	t.layers.Compute = append(t.layers.Compute, &cuda.CarryArgs{Dst: lists, Src: host, Bytes: layerLists})
	for range layerLaunches {
		t.layers.Compute = append(t.layers.Compute, &cuda.EmptyArgs{})
	}
	t.settle = 0 // warm-up runs last as long as a card needs to settle
	return t, nil
}

// besideRepeats are the layers of one sample, so that it spans several transfers.
const besideRepeats = 16
