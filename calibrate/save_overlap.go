package calibrate

import (
	"github.com/sparseserve/sparseserve/hw"
	"math"
	"slices"
)

// saveOverlap is prefill whose layers are saved during the next layers.
type saveOverlap struct{}

const (
	probeLayersNone    = "layers.nothing"
	probeLayersMemcpy  = "layers.save_memcpy"
	probeLayersGPU     = "layers.save_gpu"
	probePrefillMemcpy = "prefill.save_memcpy"
)

func (saveOverlap) probes() []Probe {
	axes := []string{"chunk_tokens", "prefix_tokens", "layers"}
	return []Probe{
		{Name: probeLayersNone, setup: (*gpuRun).setupLayers,
			Means: "prefill of a chunk in some layers, nothing saved; until all is " +
				"done",
			Axes: axes, shaped: true, needed: true},
		{Name: probeLayersMemcpy, setup: (*gpuRun).setupLayers,
			Means: "the same, each layer's KV saved by one memcpy a block",
			Axes:  axes, shaped: true},
		{Name: probeLayersGPU, setup: (*gpuRun).setupLayers,
			Means: "the same, each layer's KV saved by the GPU scatter kernel",
			Axes:  axes, shaped: true, needed: true},
		{Name: probePrefillMemcpy, setup: (*gpuRun).setupLayers,
			Means: "the same, each layer's KV saved by one memcpy a block to pages anywhere in a pinned " +
				"pool, in the order and with as many calls a layer " +
				"as the serving loop's, launched no further ahead of the saves than its save buffer allows",
			Axes: append(slices.Clone(axes), "pool_mib"), shaped: true},
	}
}

// layersTimed is the number of layers of the prefill that saves overlap with, as in a 7B model:
// nothing hides the saves of the last layer.
const layersTimed = 32

func (saveOverlap) points(p *planner) {
	prefixes := pick(p, []int64{0, 4096, 6144, 10240}, []int64{4096})
	for _, prefix := range prefixes {
		for _, probe := range []string{probeLayersNone, probeLayersMemcpy, probeLayersGPU} {
			p.add(stagePrefill, point(probe, shapes[0], 2048, prefix, layersTimed))
		}
	}
	first, middle, last := prefixes[0], prefixes[len(prefixes)/2], prefixes[len(prefixes)-1]
	pools := []int64{basePool}
	if pool := p.overlapPool(); pool > basePool {
		pools = append(pools, pool)
	}
	for _, pool := range pools {
		for _, prefix := range slices.Compact([]int64{first, middle, last}) { // the middle is held out
			p.add(stageSaveOverlap, point(probePrefillMemcpy, shapes[0], 2048, prefix, layersTimed, pool))
		}
	}
	// A layer segment of a whole prompt saves the same bytes in fewer layers; it is held out too. Its
	// pages are 256 of 16 MiB.
	if pool := pools[len(pools)-1]; pool >= 4*basePool {
		for _, part := range []int64{2, 4} {
			p.add(stageSaveOverlap, point(probeLayersNone, shapes[0], 2048*part, 0, layersTimed/part),
				point(probePrefillMemcpy, shapes[0], 2048*part, 0, layersTimed/part, pool))
		}
	}
}

// overlapPool returns the additional pool for overlapped saves: the largest allowed pool up to the
// size in a serving loop at moderate load.
func (p *planner) overlapPool() int64 {
	return slices.Max(slices.DeleteFunc(p.pools(), func(m int64) bool { return m > 16*kib }))
}

func (saveOverlap) fit(s *Samples, p *hw.Profile, from source) []model {
	fitContention(s, p, from)
	return fitOverlapped(s, p, from)
}

// fitContention finds the share of speed that compute loses while the GPU scatter kernel saves a
// layer during the next one. n layers take
//
//	compute + (n - 1) share save + save
//
// because nothing is computed during the save of the last layer.
func fitContention(s *Samples, p *hw.Profile, from source) {
	computed := map[string]float64{}
	for _, at := range s.of(probeLayersNone) {
		computed[at.Sizes()] = at.seconds
	}
	var shares []float64
	for _, at := range s.of(probeLayersGPU) {
		n, block := layerBlocks(at)
		save := priceSave(p, hw.SaveGPU, n, block, basePool, 0)
		shares = append(shares, (at.seconds-computed[at.Sizes()]-save)/(float64(at.At("layers")-1)*save))
	}
	share := math.Min(math.Max(medianOf(shares).Value, 0.001), 0.99)
	p.Save.Contention = from.figure(
		share, "share", "prefill of 2048 token chunks whose layers the scatter kernel saves, over "+
			"prefill alone")
}

// fitOverlapped finds the time of a block's save by its own memcpy while prefill is launched and
// computed, for each measured pool. Saves without prefill do not predict it, because the driver
// then copies in two ways. If saves take longer than the layers, only the compute of the first
// layer shows:
//
//	t = compute / layers + layers save(n, pool)
//
// with n blocks per layer. Each pool's row is fitted to the chunks with the shortest and the
// longest prefix with equal weight, because longer attention changes saves by one or two percent in
// either direction. Other chunks are held out.
func fitOverlapped(s *Samples, p *hw.Profile, from source) []model {
	v := &p.Save
	v.MemcpyOverlappedPools = nil
	computed := map[[3]int64]float64{}
	sizes := func(at observation) [3]int64 {
		return [3]int64{at.At("chunk_tokens"), at.At("prefix_tokens"), at.At("layers")}
	}
	for _, at := range s.of(probeLayersNone) {
		computed[sizes(at)] = at.seconds
	}
	all := s.of(probePrefillMemcpy).where(
		func(at observation) bool {
			return computed[sizes(at)] > 0 &&
				at.seconds > 1.2*computed[sizes(at)]
		})
	price := func(p *hw.Profile, at observation) float64 {
		n, block := layerBlocks(at)
		_, t, err := p.SaveSeconds(hw.SaveMemcpy, n, block, at.At("pool_mib")*mib, 0)
		must(err)
		layers := float64(at.At("layers"))
		return computed[sizes(at)]/layers + layers*t
	}

	var fit, held data
	var rows []hw.PoolTime
	var calls, weights []float64
	for _, pool := range all.values("pool_mib") {
		d := inPool(all, pool)
		chunk, prefixes := slices.Min(d.values("chunk_tokens")), d.values("prefix_tokens")
		least, most := slices.Min(prefixes), slices.Max(prefixes)
		ends := func(at observation) bool {
			prefix := at.At("prefix_tokens")
			return at.At("chunk_tokens") == chunk && (prefix == least || prefix == most)
		}
		fit, held = append(fit, d.where(ends)...),
			append(held, d.where(func(at observation) bool { return !ends(at) })...)

		row := hw.PoolTime{PoolGiB: float64(pool) / 1024, Figure: v.MemcpyCall}
		v.MemcpyOverlappedPools = []hw.PoolTime{row} // a first guess, which prices all but the calls
		more := weighted(d.where(ends), func(at observation) (rest, factor float64) {
			n, _ := layerBlocks(at)
			return at.seconds - price(p, at), float64(at.At("layers") * n)
		}, callBound.low-v.MemcpyCall.SI())
		rows, calls, weights = append(rows, row), append(calls, v.MemcpyCall.SI()+more),
			append(weights, float64(len(d.where(ends))))
	}
	if len(rows) == 0 {
		return nil
	}
	for i, call := range rising(calls, weights) {
		rows[i].Figure = from.us(call,
			"a copy of its own for each block, overlapped with prefill that another thread launches, to "+
				"pages of a pinned pool of this size")
	}
	v.MemcpyOverlappedPools = rows
	return []model{{name: "save.memcpy_overlapped", fit: fit, held: held, price: price,
		draw: picture{x: func(at observation) float64 { return float64(at.At("pool_mib")) },
			xLabel: "MiB of the pinned pool"}}}
}

// layerBlocks returns the blocks that one layer of a chunk saves, and the bytes per block.
func layerBlocks(at observation) (n, blockBytes int64) {
	return at.At("chunk_tokens") / blockTokens * int64(at.model.KVHeads),
		at.model.Geometry(blockTokens).BlockBytes
}
