package calibrate

import (
	"fmt"
	"slices"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/hw"
)

// overlap measures how much transfers by kernels and prefill slow each other down, and by how much
// a layer takes longer while its prefix loads.
type overlap struct{}

const (
	probeChunkAlone   = "overlap.prefill_alone"
	probeChunkLoading = "overlap.prefill_loading"
	probeChunkSaving  = "overlap.prefill_saving"
	probeLoadComputed = "overlap.load_prefilling"
)

func (overlap) probes() []Probe {
	axes := []string{"chunk_tokens", "prefix_tokens"}
	return []Probe{
		{Name: probeChunkAlone, setup: (*gpuRun).setupOverlapped, Axes: axes, shaped: true,
			Means: "a layer that prefills a chunk, layer after layer without pause; " + wall},
		{Name: probeChunkLoading, setup: (*gpuRun).setupOverlapped, Axes: axes, shaped: true,
			Means: "the same while FlashH2D loads on two SMs"},
		{Name: probeChunkSaving, setup: (*gpuRun).setupOverlapped, Axes: axes, shaped: true,
			Means: "the same while the GPU scatter kernel saves as many blocks again and again"},
		{Name: probeLoadComputed, setup: (*gpuRun).setupOverlapped, Axes: axes, shaped: true,
			Means: fmt.Sprintf("such a load of %d blocks of %d KiB while layers that prefill a chunk are "+
				"computed; submit until it is done", overlappedBlocks, overlappedBytes/kib)},
	}
}

// The transfers that run beside prefill.
const (
	overlappedBlocks = 32768
	overlappedBytes  = 16 * kib
)

func (overlap) points(p *planner) {
	for i, shape := range shapes {
		for _, chunk := range pick(p, []int64{512, 2048}, []int64{512}) {
			for _, probe := range []string{probeChunkAlone, probeChunkLoading, probeChunkSaving} {
				p.add(stagePrefill, point(probe, shape, chunk, 6144))
			}
		}
		for _, chunk := range pick(p, []int64{128, 256}[:i+1], []int64{512}) {
			p.add(stagePrefill, point(probeLoadComputed, shape, chunk, 6144))
		}
	}
}

// fit takes medians over shapes and chunks:
//
//	save: layer t = alone/(1 - share)    load: t = alone/(1 - share), layer t = alone + delay
func (overlap) fit(s *Samples, p *hw.Profile, from source) []model {
	alone := map[string]float64{}
	for _, at := range s.of(probeChunkAlone) {
		alone[pointKey(at)] = at.seconds
	}
	beside := func(probe string, of func(t, alone float64) float64) (all []float64) {
		for _, at := range s.of(probe) {
			if before := alone[pointKey(at)]; before > 0 {
				all = append(all, of(at.seconds, before))
			}
		}
		return all
	}
	lost := func(t, alone float64) float64 { return 1 - alone/t }
	if saving := beside(probeChunkSaving, lost); len(saving) > 0 {
		p.Save.Contention = from.figure(share(saving), "share",
			"prefill of a layer beside the GPU scatter kernel, over the same alone")
	}
	p.Load.Contention, p.Load.LayerDelay = hw.Figure{}, hw.Figure{}
	delays := beside(probeChunkLoading, func(t, alone float64) float64 { return t - alone })
	price := priceLoad(p, hw.LoadFlash, overlappedBlocks, overlappedBytes, basePool)
	loads := s.of(probeLoadComputed)
	if len(delays) == 0 || len(loads) == 0 {
		return nil
	}
	p.Load.LayerDelay = from.us(max(medianOf(delays).Value, 1e-9),
		"prefill of a layer as served that loads a prefix with FlashH2D, over one that does not")
	shortest := loads.values("chunk_tokens")[0]
	first := func(at observation) bool { return at.At("chunk_tokens") == shortest }
	fit := loads.where(first)
	var shares []float64
	for _, at := range fit {
		shares = append(shares, lost(at.seconds, price))
	}
	p.Load.Contention = from.figure(share(shares), "share",
		"FlashH2D on two SMs while layers prefill, over its price where nothing computes")
	kept := 1 - p.Load.Contention.SI()
	return []model{{name: "load.contention", fit: fit,
		held:  loads.where(func(at observation) bool { return !first(at) }),
		price: func(*hw.Profile, observation) float64 { return price / kept },
		draw: picture{x: func(at observation) float64 { return float64(at.At("chunk_tokens")) },
			xLabel: "tokens of the chunk"}}}
}

// share returns the median of shares, within the bounds of a figure.
func share(all []float64) float64 { return min(max(medianOf(all).Value, 0.001), 0.99) }

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

// setupOverlapped prepares the layers of a chunk, and the transfer that runs beside them.
func (g *gpuRun) setupOverlapped(p Point) *setup {
	t := g.chunkLayers(g.model(p.Shape), p.At("chunk_tokens"), p.At("prefix_tokens"), 16)
	if p.Probe == probeChunkAlone {
		return t
	}
	const slotBytes = overlappedBlocks * overlappedBytes
	var c checked
	if p.Probe == probeChunkSaving {
		c = g.saveAnywhere(probeSaveGPU, overlappedBlocks, overlappedBytes, basePool*mib, 0)
	} else {
		c = g.load(probeLoadFlash, g.poisoned(slotBytes), slotBytes, overlappedBlocks, overlappedBytes,
			basePool*mib)
		for _, op := range c.calls {
			op.(*cuda.FlashH2DArgs).CTAs = live.AheadCTAs
		}
	}
	t.overlap, t.verify = c.calls, both(t.verify, c.verify)
	if p.Probe == probeLoadComputed {
		t.each = func(_, overlap float64) float64 { return overlap }
	}
	return t
}
