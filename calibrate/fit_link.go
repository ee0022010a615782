package calibrate

import (
	"math"

	"github.com/sparseserve/sparseserve/hw"
)

// fitLink finds the link's rates from large copies, t = base + bytes/rate, and
// the sum of both directions at once.
func fitLink(s *Samples, p *hw.Profile, from source) []model {
	var models []model
	bytes := func(at datum) float64 { return float64(at.At("bytes")) }
	for _, way := range []struct {
		name, probe string
		figure      *hw.Figure
		price       func(p *hw.Profile, at datum) float64
	}{
		{"link.h2d", probeH2D, &p.Link.H2D, func(p *hw.Profile, at datum) float64 {
			return priceLoad(p, hw.LoadMemcpy, 1, at.At("bytes"), basePool)
		}},
		{"link.d2h", probeD2H, &p.Link.D2H, func(p *hw.Profile, at datum) float64 {
			return priceSave(p, hw.SaveMemcpy, 1, at.At("bytes"), basePool, 0)
		}},
	} {
		all := s.of(way.probe)
		ends := all.values("bytes")
		fit, held := all.split(together, 3, func(at datum) bool { return at.At("bytes") == ends[0] || at.At("bytes") == ends[len(ends)-1] })
		c := linear(fit, one, bytes)
		*way.figure = from.figure(1/math.Max(c[1], 1/rateBound.high)*1e-9, "GB/s", "large copies")
		models = append(models, model{name: way.name, fit: fit, held: held, price: way.price, draw: picture{x: bytes, xLabel: "bytes", rate: bytes}})
	}
	for _, way := range []struct {
		probe, what string
		figure      *hw.Figure
	}{
		{probeDuplexCopy, "copy engines both ways at once", &p.Link.DuplexCopy},
		{probeDuplexKernel, "kernels both ways at once", &p.Link.DuplexKernel},
	} {
		c := linear(s.of(way.probe), func(at datum) float64 { return 2 * bytes(at) })
		*way.figure = from.figure(1/c[0]*1e-9, "GB/s", way.what)
	}
	return models
}

func one(datum) float64 { return 1 }

// priceLoad and priceSave price transfers as the modelled device does.
func priceLoad(p *hw.Profile, engine string, blocks, blockBytes, poolMiB int64) float64 {
	t, err := p.LoadSeconds(engine, blocks, blockBytes, poolMiB*mib)
	must(err)
	return t
}

func priceSave(p *hw.Profile, engine string, blocks, blockBytes, poolMiB, threads int64) float64 {
	t, err := p.SaveSeconds(engine, blocks, blockBytes, poolMiB*mib, int(threads))
	must(err)
	return t
}

// Bounds of fitted times and rates: wide, but they keep a fit to few points
// from running off.
var (
	callBound  = bound{1e-8, 1e-3}  // seconds
	blockBound = bound{1e-12, 1e-4} // seconds
	floorBound = bound{1e-7, 1e-2}  // seconds
	rateBound  = bound{1e8, 1e14}   // bytes/s
	noBlock    = 5e-10              // seconds: less per block is nothing
	infinite   = math.Inf(1)        // a bound that does not bind
)
