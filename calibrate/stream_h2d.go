package calibrate

import (
	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/hw"
)

// streamH2D is FlashH2D within a stream, as for the loads of a layer: no host thread waits for it.
type streamH2D struct{}

const probeLoadStream = "load.flash_stream"

func (streamH2D) probes() []Probe {
	return []Probe{{Name: probeLoadStream, setup: (*gpuRun).setupLoadStream,
		Means: "FlashH2D, one of eight gather kernels in a row, each of other blocks anywhere in a " +
			"pinned pool; GPU time",
		Axes: []string{"block_bytes", "blocks", "pool_mib"}}}
}

// points have the sizes of the loads of a layer with several decodes.
func (streamH2D) points(p *planner) {
	for i, pool := range p.pools() {
		if pool < basePool {
			continue
		}
		for _, block := range pick(p, []int64{8 * kib, 16 * kib}, []int64{16 * kib}) {
			for _, n := range pick(p, []int64{4, 16, 64, 256}, []int64{16, 256}) {
				p.addAt(stageLoad, rank{i, 2}, point(probeLoadStream, "", block, n, pool))
			}
		}
	}
}

// fit finds the launch, t = stream + n block + B/rate(pool); the other figures are FlashH2D's.
func (streamH2D) fit(s *Samples, p *hw.Profile, from source) []model {
	p.Load.FlashStream = hw.Figure{}
	all := s.of(probeLoadStream)
	if len(all) == 0 {
		return nil
	}
	fit, held := all.split(byAxis("pool_mib"), 2, nil)
	p.Load.FlashStream = from.us(leastOverhead, "none yet")
	var launches []float64
	for _, at := range fit {
		launches = append(launches, at.seconds-priceStream(p, at)+leastOverhead)
	}
	p.Load.FlashStream = from.us(max(medianOf(launches).Value, leastOverhead),
		"one gather kernel after another in a stream, what does not grow with bytes")
	return []model{{name: probeLoadStream, fit: fit, held: held, price: priceStream, draw: drawMoved}}
}

func priceStream(p *hw.Profile, at observation) float64 {
	t, err := p.LoadStreamSeconds(at.At("blocks"), at.At("block_bytes"), at.At("pool_mib")*mib)
	must(err)
	return t
}

// streamLoads is the number of loads per sample.
const streamLoads = 8

// setupLoadStream prepares consecutive loads, each of other blocks.
func (g *gpuRun) setupLoadStream(p Point) *setup {
	t := &setup{bench: cuda.Bench{Clock: cuda.EventClock},
		each: func(sample, _ float64) float64 { return sample / streamLoads }}
	count, block, pool := p.At("blocks"), p.At("block_bytes"), p.At("pool_mib")*mib
	slotBytes := max(min(pool, g.slabBytes/2), count*block)
	slots := g.poisoned(slotBytes)
	for range freshLoads {
		var calls []cuda.Operation
		for range streamLoads {
			c := g.load(probeLoadFlash, slots, slotBytes, count, block, pool)
			calls, t.verify = append(calls, c.calls...), c.verify
		}
		t.rotation = append(t.rotation, calls)
	}
	return t
}
