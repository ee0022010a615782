package calibrate

import (
	"math"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/hw"
)

// link is the rate of large copies in each direction, and in both concurrently.
type link struct{}

const (
	probeH2D          = "link.h2d"
	probeD2H          = "link.d2h"
	probeDuplexCopy   = "link.duplex_copy"
	probeDuplexKernel = "link.duplex_kernel"
)

func (link) probes() []Probe {
	axes := []string{"bytes"}
	return []Probe{
		{Name: probeH2D, setup: (*gpuRun).setupCopy, Means: "one large copy from pinned memory; " + wall,
			Axes: axes, needed: true},
		{Name: probeD2H, setup: (*gpuRun).setupCopy, Means: "one large copy to pinned memory; " + wall,
			Axes: axes, needed: true},
		{Name: probeDuplexCopy, setup: (*gpuRun).setupCopy,
			Means: "copies both ways at once: bytes of both directions over the sum " +
				"of their rates",
			Axes: axes, needed: true},
		{Name: probeDuplexKernel, setup: (*gpuRun).setupDuplexKernel,
			Means: "FlashH2D and the GPU scatter kernel at once: bytes of both directions over the sum of " +
				"their rates",
			Axes: axes, needed: true},
	}
}

func (link) points(p *planner) {
	for _, n := range pick(p, []int64{4, 8, 16, 32, 64, 128, 256, 512}, []int64{4, 16, 32, 64}) {
		p.add(stageLink, point(probeH2D, "", n*mib), point(probeD2H, "", n*mib))
	}
	for _, n := range pick(p, []int64{64, 128, 256}, []int64{64}) {
		p.add(stageLink, point(probeDuplexCopy, "", n*mib), point(probeDuplexKernel, "", n*mib))
	}
}

// fit finds the link's rates from large copies, t = base + bytes/rate, and the total rate of both
// directions concurrently.
func (link) fit(s *Samples, p *hw.Profile, from source) []model {
	var models []model
	bytes := func(at observation) float64 { return float64(at.At("bytes")) }
	for _, way := range []struct {
		name, probe string
		figure      *hw.Figure
		price       func(p *hw.Profile, at observation) float64
	}{
		{"link.h2d", probeH2D, &p.Link.H2D, func(p *hw.Profile, at observation) float64 {
			return priceLoad(p, hw.LoadMemcpy, 1, at.At("bytes"), basePool)
		}},
		{"link.d2h", probeD2H, &p.Link.D2H, func(p *hw.Profile, at observation) float64 {
			return priceSave(p, hw.SaveMemcpy, 1, at.At("bytes"), basePool, 0)
		}},
	} {
		fit, held := s.of(way.probe).split(together, 3, nil)
		c := linear(fit, one, bytes)
		*way.figure = from.figure(1/math.Max(c[1], 1/rateBound.high)*1e-9, "GB/s", "large copies")
		models = append(models, model{name: way.name, fit: fit, held: held, price: way.price,
			draw: picture{x: bytes, xLabel: "bytes", rate: bytes}})
	}
	for _, way := range []struct {
		probe, what string
		figure      *hw.Figure
	}{
		{probeDuplexCopy, "copy engines both ways at once", &p.Link.DuplexCopy},
		{probeDuplexKernel, "kernels both ways at once", &p.Link.DuplexKernel},
	} {
		c := linear(s.of(way.probe), func(at observation) float64 { return 2 * bytes(at) })
		*way.figure = from.gbps(1/c[0], way.what)
	}
	return models
}

// setupCopy prepares single large copies over the link, in both directions.
func (g *gpuRun) setupCopy(p Point) *setup {
	n := p.At("bytes")
	dst, dstBytes := g.host(gib)
	down := &cuda.MemcpyArgs{Dst: dst, Src: g.random(n / 2), Bytes: n}
	t := &setup{bench: cuda.Bench{Clock: cuda.WallClock}, settle: g.settling(p)}
	downCopied := func() { g.copied(down, down.Src, dstBytes[:n]) }
	if p.Probe == probeD2H {
		t.bench.Calls, t.verify = []cuda.Operation{down}, downCopied
		return t
	}
	up := &cuda.MemcpyArgs{Dst: g.poisoned(n), Src: dst + gib/2, Bytes: n}
	t.bench.Calls = []cuda.Operation{up}
	t.verify = func() { g.copied(up, up.Dst, dstBytes[gib/2:gib/2+n]) }
	if p.Probe == probeDuplexCopy {
		t.overlap, t.each = []cuda.Operation{down}, bothWays
		t.verify = both(t.verify, downCopied)
	}
	return t
}

// bothWays converts the times of equal bytes in each direction into the time of both at the sum of
// their rates: 2 B / (B/a + B/b).
func bothWays(a, b float64) float64 { return 2 / (1/a + 1/b) }

// copied runs a copy and compares device and host memory.
func (g *gpuRun) copied(args *cuda.MemcpyArgs, device cuda.Ptr, host []byte) {
	g.launch(args)
	g.try(func() error { return g.s.StreamSync(0) })
	g.sameBytes(device, host, "copy over the link")
}

// setupDuplexKernel prepares FlashH2D overlapped with the GPU scatter kernel.
func (g *gpuRun) setupDuplexKernel(p Point) *setup {
	const block, pool = 16 * kib, basePool * mib
	n := p.At("bytes")
	load := g.load(probeLoadFlash, g.poisoned(n/block*block), n/block*block, n/block, block, pool)
	save := g.saveAnywhere(probeSaveGPU, n/block, block, pool, 0)
	return &setup{
		bench: cuda.Bench{Calls: load.calls, Clock: cuda.WallClock}, overlap: save.calls,
		each: bothWays, verify: both(load.verify, save.verify),
	}
}
