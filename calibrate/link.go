package calibrate

import (
	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/hw"
)

// link is the rate of large copies in each direction, and in both concurrently.
type link struct{}

func (link) points(p *planner) {
	for _, n := range pick(p, []int64{4, 8, 16, 32, 64, 128, 256, 512}, []int64{4, 16, 32, 64}) {
		p.add(point(probeH2D, "", n*mib), point(probeD2H, "", n*mib))
	}
	for _, n := range pick(p, []int64{64, 128, 256}, []int64{64}) {
		p.add(point(probeDuplex, "", n*mib, 0), point(probeDuplex, "", 0, n*mib))
	}
}

// fit finds the link's rates from large copies, t = base + bytes/rate, and the total rate of both
// directions concurrently.
func (link) fit(s *Samples, p *hw.Profile, from source) (models []model) {
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
func (g *gpuRun) setupCopy(p Point) *setup {
	up, down := g.copies(p.At("bytes"))
	c := up
	if p.Probe == probeD2H {
		c = down
	}
	return &setup{bench: cuda.Bench{Clock: cuda.WallClock, Calls: c.calls}, verify: c.verify,
		settle: g.settling(p)}
}

// copies prepares a large copy in each direction.
func (g *gpuRun) copies(n int64) (up, down checked) {
	host, bytes := g.host(gib)
	d2h := &cuda.MemcpyArgs{Dst: host, Src: g.random(n / 2), Bytes: n}
	h2d := &cuda.MemcpyArgs{Dst: g.poisoned(n), Src: host + gib/2, Bytes: n}
	return checked{[]cuda.Operation{h2d}, func() { g.copied(h2d, h2d.Dst, bytes[gib/2:gib/2+n]) }},
		checked{[]cuda.Operation{d2h}, func() { g.copied(d2h, d2h.Src, bytes[:n]) }}
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
func (g *gpuRun) setupDuplex(p Point) *setup {
	const block, pool = 16 * kib, basePool * mib
	load, save := checked{}, checked{}
	if n := p.At("kernel_bytes"); n > 0 {
		load = g.load(probeLoadFlash, g.poisoned(n/block*block), n/block*block, n/block, block, pool)
		save = g.saveAnywhere(probeSaveGPU, n/block, block, pool, 0)
	} else {
		load, save = g.copies(p.At("copied_bytes"))
	}
	return &setup{
		bench: cuda.Bench{Calls: load.calls, Clock: cuda.WallClock}, overlap: save.calls,
		each: bothWays, verify: both(load.verify, save.verify),
	}
}
