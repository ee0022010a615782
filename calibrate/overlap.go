package calibrate

import (
	"slices"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
)

// The blocks that move beside prefill.
const (
	overlappedBlocks = 32768
	overlappedBytes  = 16 * kib
)

// fitOverlap takes medians over shapes and chunks:
//
//	save: layer t = alone/(1 - share)    load: layer t = alone + delay
func fitOverlap(s *Samples, p *hw.Profile, from source) []model {
	key := func(at observation) string { return at.Shape + " " + byAxis("chunk_tokens")(at) }
	alone := map[string]float64{}
	var loading, saving []observation
	for _, at := range s.of(probeOverlap) {
		switch {
		case at.At("loaded_blocks") > 0:
			loading = append(loading, at)
		case at.At("saved_blocks") > 0:
			saving = append(saving, at)
		default:
			alone[key(at)] = at.seconds
		}
	}
	beside := func(points data, of func(t, alone float64) float64) (all []float64) {
		for _, at := range points {
			if before := alone[key(at)]; before > 0 {
				all = append(all, of(at.seconds, before))
			}
		}
		return all
	}
	if lost := beside(saving, func(t, alone float64) float64 { return 1 - alone/t }); len(lost) > 0 {
		p.Save.Contention = from.figure(min(max(medianOf(lost).Value, 0.001), 0.99), "share",
			"prefill of a layer beside the GPU scatter kernel, over the same alone")
	}
	p.Load.LayerDelay = hw.Figure{}
	delays := beside(loading, func(t, alone float64) float64 { return t - alone })
	if len(delays) > 0 {
		p.Load.LayerDelay = from.us(max(medianOf(delays).Value, 1e-9),
			"prefill of a layer as served that loads a prefix with FlashH2D, over one that does not")
	}
	return nil
}

// chunkLayer prepares the linears and the attention of one chunk in one layer.
func (g *gpuRun) chunkLayer(m *llm.Model, tokens, prefix int64) *work {
	return g.linears(m, tokens).with(g.prefill(m, tokens, prefix, blockTokens))
}

// chunkLayers prepares consecutive layers of a chunk without pause.
func (g *gpuRun) chunkLayers(m *llm.Model, tokens, prefix int64, layers int) *work {
	layer := g.chunkLayer(m, tokens, prefix)
	return &work{calls: slices.Repeat(layer.calls, layers), verify: layer.verify,
		each: func(sample, _ float64) float64 { return sample / float64(layers) }}
}

// setupOverlapped prepares the layers of a chunk, and the transfer that runs beside them.
func (g *gpuRun) setupOverlapped(p Point) *work {
	t := g.chunkLayers(g.model(p.Shape), p.At("chunk_tokens"), p.At("prefix_tokens"), 16)
	var c *work
	switch loads, saves := p.At("loaded_blocks"), p.At("saved_blocks"); {
	case loads > 0:
		bytes := loads * overlappedBytes
		c = g.load(probeLoadFlash, g.poisoned(bytes), bytes, loads, overlappedBytes, basePool*mib)
		for _, op := range c.calls {
			op.(*cuda.FlashH2DArgs).CTAs = live.AheadCTAs
		}
	case saves > 0:
		c = g.saveAnywhere(probeSaveGPU, saves, overlappedBytes, basePool*mib, 0)
	default:
		return t
	}
	t.overlap, t.verify = c.calls, both(t.verify, c.verify)
	return t
}
