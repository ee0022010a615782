package calibrate

import (
	"fmt"

	"github.com/sparseserve/sparseserve/hw"
)

// loadOverlap is prefill of a layer, with all launches of the serving loop for it and for decodes,
// and the decodes' round trip, while FlashH2D loads the next layer's prefix on few SMs, as the loop
// does.
type loadOverlap struct{}

const (
	probeChunkAlone   = "overlap.prefill_alone"
	probeChunkLoading = "overlap.prefill_loading"
	probeTripAlone    = "overlap.trip_alone"
	probeTripLoading  = "overlap.trip_loading"
	probeLoadComputed = "overlap.load_prefilling"
)

func (loadOverlap) probes() []Probe {
	axes := []string{"chunk_tokens", "prefix_tokens"}
	return []Probe{
		{Name: probeChunkAlone, serve: (*gpuBench).prepareOverlapped, Axes: axes, shaped: true,
			fixed: clockSamples,
			Means: "a layer that prefills a chunk, with what the serving loop launches and saves but " +
				"without a round trip, some times over after decodes; GPU time"},
		{Name: probeChunkLoading, serve: (*gpuBench).prepareOverlapped, Axes: axes, shaped: true,
			fixed: clockSamples, Means: "the same while FlashH2D loads on two SMs, with what is " +
				"launched for the next layer's part of a prefix"},
		{Name: probeTripAlone, serve: (*gpuBench).prepareOverlapped, Axes: []string{"bytes"},
			fixed: clockSamples,
			Means: "a round trip: so many bytes to the host, an event, a gate that the host opens and " +
				"which brings as many; GPU time"},
		{Name: probeTripLoading, serve: (*gpuBench).prepareOverlapped, Axes: []string{"bytes"},
			fixed: clockSamples, Means: "the same while FlashH2D loads on two SMs"},
		{Name: probeLoadComputed, setup: (*gpuRun).setupComputed, Axes: axes, shaped: true,
			Means: fmt.Sprintf("such a load of %d blocks of %d KiB while layers that prefill a chunk are "+
				"computed; submit until it is done", overlappedBlocks, overlappedBytes/kib)},
	}
}

func (loadOverlap) points(p *planner) {
	for i, shape := range shapes {
		for _, chunk := range pick(p, overlappedSizes[i], []int64{512}) {
			p.add(stagePrefill, point(probeChunkAlone, shape, chunk, 6144))
			p.add(stagePrefill, point(probeChunkLoading, shape, chunk, 6144))
		}
		for _, chunk := range pick(p, []int64{128, 256}[:i+1], []int64{512}) {
			p.add(stagePrefill, point(probeLoadComputed, shape, chunk, 6144))
		}
	}
	p.add(stagePrefill, point(probeTripAlone, "", layerLists))
	p.add(stagePrefill, point(probeTripLoading, "", layerLists))
}

// overlappedSizes are the chunk tokens of each shape: multiples of 64, as the live loop's linears
// have. Chunks whose CTAs just fill the SMs lose most. One shape has fewer sizes.
var overlappedSizes = [...][]int64{{128, 512, 2048},
	append(onGrid(512), 640, 1024, 1536, 2048)}

// fit finds the mutual slow-down of a layer, its round trip and a load. A layer's delay is kept for
// each shape and number of tokens; a load's share is the median over shapes:
//
//	layer: t = alone + delay(tokens)     trip: t = alone + delay     load: t = alone/(1 - share)
func (loadOverlap) fit(s *Samples, p *hw.Profile, from source) []model {
	p.Load.Contention, p.Load.LayerDelay, p.Load.TripDelay = hw.Figure{}, nil, hw.Figure{}
	price := priceLoad(p, hw.LoadFlash, overlappedBlocks, overlappedBytes, basePool)
	loads := s.of(probeLoadComputed)
	if len(loads) == 0 || price == 0 {
		return nil
	}
	p.Load.LayerDelay = delayRows(s, from)
	if len(p.Load.LayerDelay) == 0 {
		return nil
	}
	shortest := loads.values("chunk_tokens")[0]
	first := func(at observation) bool { return at.At("chunk_tokens") == shortest }
	fit := loads.where(first)
	var shares []float64
	for _, at := range fit {
		shares = append(shares, 1-price/at.seconds)
	}
	if trip, alone := s.of(probeTripLoading), s.of(probeTripAlone); len(trip) > 0 && len(alone) > 0 {
		p.Load.TripDelay = from.figure(max(trip[0].seconds-alone[0].seconds, 1e-9)*1e6, "us",
			"a round trip as served while FlashH2D loads, over the same alone")
	}
	share := min(max(medianOf(shares).Value, 0.001), 0.99)
	p.Load.Contention = from.figure(share, "share",
		"FlashH2D on two SMs while layers prefill, over its price where nothing computes")
	return []model{{name: "load.contention", fit: fit,
		held:  loads.where(func(at observation) bool { return !first(at) }),
		price: func(*hw.Profile, observation) float64 { return price / (1 - share) },
		draw: picture{x: func(at observation) float64 { return float64(at.At("chunk_tokens")) },
			xLabel: "tokens of the chunk"}}}
}

// delayRows returns the extra time of layers that load a prefix throughout.
func delayRows(s *Samples, from source) (rows []hw.TokenRow) {
	alone := map[string]float64{}
	for _, at := range s.of(probeChunkAlone) {
		alone[pointKey(at)] = at.seconds
	}
	for _, at := range s.of(probeChunkLoading).inOrder("chunk_tokens") {
		t, known := alone[pointKey(at)]
		if !known {
			continue
		}
		rows = append(rows, hw.TokenRow{Shape: at.Shape, Tokens: int(at.At("chunk_tokens")),
			Figure: from.figure(max(at.seconds-t, 1e-9)*1e6, "us",
				"prefill of a layer as served that loads a prefix with FlashH2D, over one that does not")})
	}
	return rows
}
