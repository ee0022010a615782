package calibrate

import "github.com/sparseserve/sparseserve/hw"

// loadOverlap is prefill of a layer while FlashH2D loads the next layer's part of a prefix.
type loadOverlap struct{}

const (
	probeChunkAlone   = "overlap.nothing"
	probeChunkLoading = "overlap.load_flash"
	probeLoadComputed = "overlap.loading"
)

func (loadOverlap) probes() []Probe {
	axes := []string{"chunk_tokens", "prefix_tokens"}
	return []Probe{
		{Name: probeChunkAlone, setup: (*gpuRun).setupOverlapped, Axes: axes, shaped: true,
			Means: "a layer of a chunk's prefill, of many in a row; GPU time"},
		{Name: probeChunkLoading, setup: (*gpuRun).setupOverlapped, Axes: axes, shaped: true,
			Means: "the same while FlashH2D loads without pause on another stream"},
		{Name: probeLoadComputed, setup: (*gpuRun).setupOverlapped, Axes: axes, shaped: true,
			Means: "the time of such a load, 4096 blocks of 16 KiB; submit until it is done"},
	}
}

func (loadOverlap) points(p *planner) {
	for _, shape := range shapes {
		for _, chunk := range pick(p, []int64{128, 512, 2048}, []int64{512}) {
			for _, probe := range []string{probeChunkAlone, probeChunkLoading, probeLoadComputed} {
				p.add(stagePrefill, point(probe, shape, chunk, 6144))
			}
		}
	}
}

// fit finds the share of its speed that each loses to the other, the median over both and chunks:
//
//	t = alone/(1 - share)
//
// Longer chunks lose less, and loads that overlap with them more; those between are held out.
func (loadOverlap) fit(s *Samples, p *hw.Profile, from source) []model {
	p.Load.Contention = hw.Figure{}
	alone := map[string]float64{}
	for _, at := range s.of(probeChunkAlone) {
		alone[pointKey(at)] = at.seconds
	}
	of := func(at observation) float64 {
		if at.Probe == probeLoadComputed {
			return priceLoad(p, hw.LoadFlash, overlappedBlocks, overlappedBytes, basePool)
		}
		return alone[pointKey(at)]
	}
	all := append(s.of(probeChunkLoading), s.of(probeLoadComputed)...).where(
		func(at observation) bool { return of(at) > 0 })
	if len(all) == 0 {
		return nil
	}
	chunks := all.values("chunk_tokens")
	between := func(at observation) bool {
		n := at.At("chunk_tokens")
		return n != chunks[0] && n != chunks[len(chunks)-1]
	}
	fit := all.where(func(at observation) bool { return !between(at) })
	var shares []float64
	for _, at := range fit {
		shares = append(shares, 1-of(at)/at.seconds)
	}
	share := min(max(medianOf(shares).Value, 0.001), 0.99)
	p.Load.Contention = from.figure(share, "share",
		"prefill of a layer while FlashH2D loads, and such loads, over each without the other")
	return []model{{name: "load.contention", fit: fit, held: all.where(between),
		price: func(_ *hw.Profile, at observation) float64 { return of(at) / (1 - share) },
		draw: picture{x: func(at observation) float64 { return float64(at.At("chunk_tokens")) },
			xLabel: "tokens of the chunk"}}}
}

// Of each load that overlaps with prefill; long, so that the next one's start is not seen.
const overlappedBlocks, overlappedBytes = 4096, 16 * kib

func (g *gpuRun) setupOverlapped(p Point) *setup {
	t := g.chunkLayers(g.model(p.Shape), p.At("chunk_tokens"), p.At("prefix_tokens"))
	if p.Probe == probeChunkAlone {
		return t
	}
	slotBytes := int64(overlappedBlocks * overlappedBytes)
	c := g.load(probeLoadFlash, g.poisoned(slotBytes), slotBytes, overlappedBlocks, overlappedBytes,
		basePool*mib)
	t.overlap, t.verify = c.calls, both(t.verify, c.verify)
	if p.Probe == probeLoadComputed {
		t.each = func(_, overlap float64) float64 { return overlap }
	}
	return t
}
