package calibrate

import (
	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/hw"
)

// loadOverlap is prefill of a layer, with all that the serving loop launches in it for that and for
// decodes, while FlashH2D loads the next layer's part of a prefix as the loop does: on few SMs.
type loadOverlap struct{}

const (
	probeChunkAlone   = "overlap.layer_alone"
	probeChunkLoading = "overlap.layer_loading"
	probeLoadComputed = "overlap.load_computing"
)

func (loadOverlap) probes() []Probe {
	axes := []string{"chunk_tokens", "prefix_tokens"}
	return []Probe{
		{Name: probeChunkAlone, setup: (*gpuRun).setupOverlapped, Axes: axes, shaped: true,
			Means: "a layer that prefills a chunk, with what the serving loop launches; GPU time"},
		{Name: probeChunkLoading, setup: (*gpuRun).setupOverlapped, Axes: axes, shaped: true,
			Means: "the same while FlashH2D loads without pause on two SMs"},
		{Name: probeLoadComputed, setup: (*gpuRun).setupOverlapped, Axes: axes, shaped: true,
			Means: "such a load of 4096 blocks of 16 KiB meanwhile; submit until it is done"},
	}
}

func (loadOverlap) points(p *planner) {
	for _, shape := range shapes {
		for i, chunk := range pick(p, []int64{128, 512, 2048}, []int64{512}) {
			p.add(stagePrefill, point(probeChunkAlone, shape, chunk, 6144))
			p.add(stagePrefill, point(probeChunkLoading, shape, chunk, 6144))
			if i == 0 { // longer kernels keep the next load from its SMs, which no layer's end does
				p.add(stagePrefill, point(probeLoadComputed, shape, chunk, 6144))
			}
		}
	}
}

// fit finds what a layer and a load lose to each other, medians over chunks and shapes:
//
//	layer: t = alone + delay        load: t = alone/(1 - share)
//
// Layers between the shortest and the longest chunks are held out.
func (loadOverlap) fit(s *Samples, p *hw.Profile, from source) []model {
	p.Load.Contention, p.Load.LayerDelay = hw.Figure{}, hw.Figure{}
	alone := map[string]float64{}
	for _, at := range s.of(probeChunkAlone) {
		alone[pointKey(at)] = at.seconds
	}
	of := func(at observation) float64 { return alone[pointKey(at)] }
	layers := s.of(probeChunkLoading).where(func(at observation) bool { return of(at) > 0 })
	price := priceLoad(p, hw.LoadFlash, overlappedBlocks, overlappedBytes, basePool)
	loads := s.of(probeLoadComputed)
	if len(layers) == 0 || len(loads) == 0 || price == 0 {
		return nil
	}
	chunks := layers.values("chunk_tokens")
	between := func(at observation) bool {
		n := at.At("chunk_tokens")
		return n != chunks[0] && n != chunks[len(chunks)-1]
	}
	fit := layers.where(func(at observation) bool { return !between(at) })
	var delays, shares []float64
	for _, at := range fit {
		delays = append(delays, at.seconds-of(at))
	}
	for _, at := range loads {
		shares = append(shares, 1-price/at.seconds)
	}
	delay, share := max(medianOf(delays).Value, 1e-9), min(max(medianOf(shares).Value, 0.001), 0.99)
	p.Load.LayerDelay = from.figure(delay*1e6, "us",
		"prefill of a layer as served while FlashH2D loads, over the same alone")
	p.Load.Contention = from.figure(share, "share",
		"FlashH2D on two SMs while layers prefill, over its price where nothing computes")
	return []model{{name: "load.contention", fit: append(fit, loads...), held: layers.where(between),
		price: func(_ *hw.Profile, at observation) float64 {
			if at.Probe == probeLoadComputed {
				return price / (1 - share)
			}
			return of(at) + delay
		},
		draw: picture{x: func(at observation) float64 { return float64(at.At("chunk_tokens")) },
			xLabel: "tokens of the chunk"}}}
}

// mixedLaunches is what the serving loop launches in a layer that decodes and prefills after a
// prefix, beyond linears, the prefill's attention, and the selection, lists and addresses that it
// carries.
const mixedLaunches = 13

// Of each load that overlaps with prefill; long, so that the next one's start is not seen.
const overlappedBlocks, overlappedBytes = 4096, 16 * kib

func (g *gpuRun) setupOverlapped(p Point) *setup {
	t := g.chunkLayers(g.model(p.Shape), p.At("chunk_tokens"), p.At("prefix_tokens"),
		g.loopCalls(2, 1, mixedLaunches)...)
	if p.Probe == probeChunkAlone {
		return t
	}
	slotBytes := int64(overlappedBlocks * overlappedBytes)
	c := g.load(probeLoadFlash, g.poisoned(slotBytes), slotBytes, overlappedBlocks, overlappedBytes,
		basePool*mib)
	for _, op := range c.calls {
		op.(*cuda.FlashH2DArgs).CTAs = live.AheadCTAs
	}
	t.overlap, t.verify = c.calls, both(t.verify, c.verify)
	if p.Probe == probeLoadComputed {
		t.each = func(_, overlap float64) float64 { return overlap }
	}
	return t
}
