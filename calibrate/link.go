package calibrate

import (
	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/hw"
)

// fitLink finds the link's rates from large copies, t = base + bytes/rate, and the total rate of
// both directions concurrently.
func fitLink(s *Samples, p *hw.Profile, from source) (models []model) {
	bytes := func(axis string) func(observation) float64 {
		return func(at observation) float64 { return float64(at.At(axis)) }
	}
	var base hw.Figure
	for _, way := range []struct {
		probe  string
		figure *hw.Figure
		rate   func(*hw.Profile) float64
	}{{probeH2D, &p.Link.H2D, loadLink}, {probeD2H, &p.Link.D2H, saveLink}} {
		n := bytes("bytes")
		l := law{model: way.probe, points: s.of(way.probe), group: together,
			terms: []term{launch(&base, ""), over(n, way.figure, rateBound.high, "large copies")},
			price: func(p *hw.Profile, at observation) float64 { return n(at) / way.rate(p) }}
		models = append(models, l.fit(from))
	}
	for axis, way := range map[string]term{
		"copied_bytes": over(bytes("copied_bytes"), &p.Link.DuplexCopy, rateBound.high,
			"copy engines both ways at once"),
		"kernel_bytes": over(bytes("kernel_bytes"), &p.Link.DuplexKernel, rateBound.high,
			"kernels both ways at once"),
	} {
		n := bytes(axis)
		way.amount = func(at observation) float64 { return 2 * n(at) }
		fitTerms(s.of(probeDuplex).where(func(at observation) bool { return n(at) > 0 }), from, way)
	}
	return models
}

// setupCopy prepares single large copies over the link, in one direction.
func (g *gpuRun) setupCopy(p Point) *work {
	up, down := g.copies(p.At("bytes"))
	if p.Probe == probeD2H {
		return down
	}
	return up
}

// copies prepares a large copy in each direction.
func (g *gpuRun) copies(n int64) (up, down *work) {
	host, bytes := g.host(gib)
	d2h := &cuda.MemcpyArgs{Dst: host, Src: g.random(n / 2), Bytes: n}
	h2d := &cuda.MemcpyArgs{Dst: g.poisoned(n), Src: host + gib/2, Bytes: n}
	return &work{calls: []cuda.Operation{h2d}, verify: func() {
			g.copied(h2d, h2d.Dst, bytes[gib/2:gib/2+n])
		}},
		&work{calls: []cuda.Operation{d2h}, verify: func() { g.copied(d2h, d2h.Src, bytes[:n]) }}
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

// setupDuplex prepares copies in both directions, or FlashH2D overlapped with the GPU scatter
// kernel.
func (g *gpuRun) setupDuplex(p Point) *work {
	const block, pool = 16 * kib, basePool * mib
	var load, save *work
	if n := p.At("kernel_bytes"); n > 0 {
		load = g.load(probeLoadFlash, g.poisoned(n/block*block), n/block*block, n/block, block, pool)
		save = g.saveAnywhere(probeSaveGPU, n/block, block, pool, 0)
	} else {
		load, save = g.copies(p.At("copied_bytes"))
	}
	return &work{calls: load.calls, overlap: save.calls, each: bothWays,
		verify: both(load.verify, save.verify)}
}
