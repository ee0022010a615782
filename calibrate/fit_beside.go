package calibrate

import (
	"math"

	"sparseserve/hw"
)

// fitBeside finds what a block takes longer to be saved with a memcpy of its own
// while prefill is computed and launched beside it. Of prefill whose saves take
// longer than its layers, all but the first layer is hidden:
//
//	t = alone / layers + layers n (block + beside)
//
// with n blocks a layer and block as saved alone, to anywhere in the pool; beside
// is below 0 where the pages that the serving loop saves to are worth more. The
// figure is of the base pool; points of another are held out.
func fitBeside(s *Samples, p *hw.Profile, from source) []model {
	p.Save.MemcpyBeside, p.Save.MemcpyPaged = hw.Figure{}, hw.Figure{}
	alone := map[[3]int64]float64{}
	sizes := func(at datum) [3]int64 {
		return [3]int64{at.At("chunk_tokens"), at.At("prefix_tokens"), at.At("layers")}
	}
	for _, at := range s.of(probeLayersNone) {
		alone[sizes(at)] = at.seconds
	}
	all := s.of(probePrefillMemcpy).where(func(at datum) bool { return alone[sizes(at)] > 0 && at.seconds > 1.2*alone[sizes(at)] })
	if len(all) == 0 {
		return nil
	}
	layers := func(at datum) float64 { return float64(at.At("layers")) }
	hidden := func(at datum, save float64) float64 {
		return math.Max(alone[sizes(at)]/layers(at)+layers(at)*save, alone[sizes(at)])
	}
	price := func(p *hw.Profile, at datum) float64 {
		n, block := layerBlocks(at)
		t, err := p.BesidePrefillSeconds(hw.SaveMemcpy, n, block, at.At("pool_mib")*mib, 0)
		must(err)
		return hidden(at, t)
	}
	fit := inPool(all, basePool)
	held := all.where(func(at datum) bool { return at.At("pool_mib") != basePool })
	var more []float64
	for _, at := range fit {
		n, _ := layerBlocks(at)
		more = append(more, (at.seconds-price(p, at))/(layers(at)*float64(n))) // priced without the figure
	}
	if len(more) > 0 {
		m := medianOf(more).Value
		p.Save.MemcpyBeside = perBlock(m, from, "what a memcpy a block takes longer beside prefill whose launches another thread makes, over the same alone")
		p.Save.MemcpyPaged = perBlock(-m, from, "what a memcpy a block takes less beside prefill whose launches another thread makes, to pages as the serving loop has them, over the same to anywhere alone")
	}
	return []model{{name: "save.memcpy_beside", fit: fit, held: held, price: price,
		draw: picture{x: func(at datum) float64 { return 1 + float64(at.At("prefix_tokens")) }, xLabel: "tokens before the chunk"}}}
}

// layerBlocks is what one layer of a chunk saves, and the bytes of a block.
func layerBlocks(at datum) (n, blockBytes int64) {
	return at.At("chunk_tokens") / blockTokens * int64(at.model.KVHeads), at.model.Geometry(blockTokens).BlockBytes
}
