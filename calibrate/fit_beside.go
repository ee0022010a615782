package calibrate

import (
	"slices"

	"github.com/sparseserve/sparseserve/hw"
)

// fitBeside finds what a block takes to be saved with a memcpy of its own while
// prefill is computed and launched beside it, over each pool where that was
// measured: what the same takes alone says little of it, as the driver copies in
// two ways there. Of prefill whose saves take longer than its layers, all but the
// first layer is hidden:
//
//	t = alone / layers + layers save(n, pool)
//
// with n blocks a layer. Each pool's row is of the chunks behind the fewest and the
// most tokens alike: saves take a percent or two more or less beside longer attention,
// the one way over one pool and the other over another. Chunks between are held out.
func fitBeside(s *Samples, p *hw.Profile, from source) []model {
	v := &p.Save
	v.MemcpyBesidePools = nil
	alone := map[[3]int64]float64{}
	sizes := func(at datum) [3]int64 {
		return [3]int64{at.At("chunk_tokens"), at.At("prefix_tokens"), at.At("layers")}
	}
	for _, at := range s.of(probeLayersNone) {
		alone[sizes(at)] = at.seconds
	}
	all := s.of(probePrefillMemcpy).where(func(at datum) bool { return alone[sizes(at)] > 0 && at.seconds > 1.2*alone[sizes(at)] })
	price := func(p *hw.Profile, at datum) float64 {
		n, block := layerBlocks(at)
		t, err := p.BesidePrefillSeconds(hw.SaveMemcpy, n, block, at.At("pool_mib")*mib, 0)
		must(err)
		layers := float64(at.At("layers"))
		return alone[sizes(at)]/layers + layers*t
	}

	var fit, held data
	var rows []hw.PoolTime
	var calls, weights []float64
	for _, pool := range all.values("pool_mib") {
		d := inPool(all, pool)
		chunk, prefixes := slices.Min(d.values("chunk_tokens")), d.values("prefix_tokens")
		least, most := slices.Min(prefixes), slices.Max(prefixes)
		ends := func(at datum) bool {
			prefix := at.At("prefix_tokens")
			return at.At("chunk_tokens") == chunk && (prefix == least || prefix == most)
		}
		fit, held = append(fit, d.where(ends)...), append(held, d.where(func(at datum) bool { return !ends(at) })...)

		row := hw.PoolTime{PoolGiB: float64(pool) / 1024, Figure: v.MemcpyCall}
		v.MemcpyBesidePools = []hw.PoolTime{row} // a first guess, which prices all but the calls
		more := weighted(d.where(ends), func(at datum) (rest, factor float64) {
			n, _ := layerBlocks(at)
			return at.seconds - price(p, at), float64(at.At("layers") * n)
		}, callBound.low-v.MemcpyCall.SI())
		rows, calls, weights = append(rows, row), append(calls, v.MemcpyCall.SI()+more), append(weights, float64(len(d.where(ends))))
	}
	if len(rows) == 0 {
		return nil
	}
	for i, call := range rising(calls, weights) {
		rows[i].Figure = from.figure(call*1e6, "us", "a copy of its own for each block beside prefill whose launches another thread makes, to pages of a pinned pool of this size")
	}
	v.MemcpyBesidePools = rows
	return []model{{name: "save.memcpy_beside", fit: fit, held: held, price: price,
		draw: picture{x: func(at datum) float64 { return float64(at.At("pool_mib")) }, xLabel: "MiB of the pinned pool"}}}
}

// layerBlocks is what one layer of a chunk saves, and the bytes of a block.
func layerBlocks(at datum) (n, blockBytes int64) {
	return at.At("chunk_tokens") / blockTokens * int64(at.model.KVHeads), at.model.Geometry(blockTokens).BlockBytes
}
