package calibrate

import (
	"slices"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/hw"
)

// chunkLayer prepares the linears and the attention of one chunk in one layer.
func (g *gpuRun) chunkLayer(m *hw.Model, tokens, prefix int64) checked {
	return g.linears(m, tokens).with(g.prefill(m, tokens, prefix, blockTokens))
}

// chunkLayers prepares consecutive layers of a chunk without pause.
func (g *gpuRun) chunkLayers(m *hw.Model, tokens, prefix int64, layers int) *setup {
	layer := g.chunkLayer(m, tokens, prefix)
	return &setup{
		bench:  cuda.Bench{Calls: slices.Repeat(layer.calls, layers)},
		verify: layer.verify, settle: 2 * settled,
		each: func(sample, _ float64) float64 { return sample / float64(layers) },
	}
}

// The serving loop's work per layer, without saving the KV of prefill.
const (
	saveBuffer    = 256 * mib
	layerLaunches = 9 // calls but linears, attention and the kernel that carries lists: 15 in all
	layerLists    = 16 * kib
)

// saveEngineOf is the engine that saves each layer's KV, by probe.
var saveEngineOf = map[string]string{
	probeLayersMemcpy: probeSaveMemcpy, probeLayersGPU: probeSaveGPU,
	probePrefillMemcpy: probeSaveMemcpy,
}

// setupLayers prepares the prefill of a chunk in several layers. The KV of each layer is saved in
// blocks when it is computed.
func (g *gpuRun) setupLayers(p Point) *setup {
	m, chunk := g.model(p.Shape), p.At("chunk_tokens")
	layer := g.chunkLayer(m, chunk, p.At("prefix_tokens"))
	t := &setup{verify: layer.verify, settle: settled}
	t.layers = &cuda.Layers{Compute: layer.calls, Layers: int(p.At("layers"))}
	engine := saveEngineOf[p.Probe]
	count, block := chunk/blockTokens, m.Geometry(blockTokens).BlockBytes
	switch {
	case engine == "":
	case p.Probe == probePrefillMemcpy:
		g.saveAsServed(t, p, m, count, block)
	default:
		c := g.saveAnywhere(engine, count*int64(m.KVHeads), block, basePool*mib, g.spareThreads)
		t.layers.Save, t.verify = c.calls, both(t.verify, c.verify)
	}
	return t
}

// saveAsServed saves from and to the same places as the serving loop: each layer from the next part
// of the save buffer to its own blocks. Reused blocks would stay in the caches.
func (g *gpuRun) saveAsServed(t *setup, p Point, m *hw.Model, count, block int64) {
	heads := int64(m.KVHeads)
	layerBytes := count * heads * block
	if layerBytes > saveBuffer {
		g.fail("a layer's saves of %d bytes do not fit the save buffer of %d", layerBytes,
			int64(saveBuffer))
		return
	}
	to := g.pageBlocks(int64(m.Layers), p.At("layers"), heads, count, block, p.At("pool_mib")*mib)
	buffer := g.random(saveBuffer / 2)
	t.layers.Each, t.layers.Buffered = 1, int(saveBuffer/layerBytes)
	for i := range to {
		from := buffer + cuda.Ptr(int64(i%t.layers.Buffered)*layerBytes)
		c := g.save(probeSaveMemcpy, from, to[i], block, 0)
		t.layers.Save = append(t.layers.Save, c.calls...)
		if i == 0 || i == len(to)-1 {
			t.verify = both(t.verify, c.verify)
		}
	}
	t.layers.Compute = append(t.layers.Compute, g.loopCalls(layerLaunches)...)
	t.settle = 0 // warm-up runs last as long as a card needs to settle
}

// loopCalls returns the serving loop's calls per layer without linears and attention: a kernel that
// uploads lists, and empty kernels, because the others compute little.
func (g *gpuRun) loopCalls(empty int) (calls []cuda.Operation) {
	host, _ := g.host(layerLists)
	calls = append(calls, &cuda.CarryArgs{Dst: g.poisoned(layerLists), Src: host, Bytes: layerLists})
	for range empty {
		calls = append(calls, &cuda.EmptyArgs{})
	}
	return calls
}
