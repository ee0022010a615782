package calibrate

import (
	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/cuda/reference"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
)

// blockClose is the cost of full blocks: metadata and the copy to the save buffer.
type blockClose struct{}

const (
	probeRope  = "layer.rope"
	probeClose = "layer.close"
)

func (blockClose) probes() []Probe {
	return []Probe{
		{Name: probeRope, setup: (*gpuRun).setupClose,
			Means: "the two with rope of a prompt's tokens, K and V to their blocks, " +
				"between them; " + gpuTime,
			Axes: []string{"tokens"}, shaped: true},
		{Name: probeClose, setup: (*gpuRun).setupClose,
			Means: "the same, and after it the digests of these blocks and their copy to " +
				"a save buffer; " + gpuTime,
			Axes: []string{"tokens"}, shaped: true},
	}
}

func (blockClose) points(p *planner) {
	for _, shape := range shapes {
		for _, tokens := range pick(p, []int64{blockTokens, 1024, 2048, 4096, 8192},
			[]int64{blockTokens, 4096}) {
			p.add(stageBlockClose, point(probeRope, shape, tokens), point(probeClose, shape, tokens))
		}
	}
}

// fit fits the cost of the blocks that a prompt has filled, their metadata and their copy to the
// save buffer: t = launch + bytes/rate. It is the time that these kernels add to the kernel that
// has just written the blocks. With few blocks K is still in the L2.
func (blockClose) fit(s *Samples, p *hw.Profile, from source) []model {
	p.BlockClose = hw.BlockClose{}
	all := s.of(probeClose).beyond(s.of(probeRope), pointKey).where(positive)
	if len(all) < 4 {
		return nil
	}
	bytes := func(at observation) float64 {
		return tokens(at) * float64(at.model.LayerKVBytesPerToken())
	}
	fewest := all.values("tokens")[0]
	fit, held := all.split(func(at observation) string { return at.Shape }, 2,
		func(at observation) bool { return at.At("tokens") == fewest })
	c := fitBytes(fit, bytes, p.GPU.HBMBandwidth.SI())
	const what = "metadata of a prompt's full blocks and their copy to the save buffer, after the " +
		"write of their K and V"
	p.BlockClose = hw.BlockClose{Launch: from.us(c[0], what),
		Rate: from.gbps(c[1], what+", bytes of K and V")}
	return []model{{name: "block_close", fit: fit, held: held,
		draw: picture{x: bytes, xLabel: "bytes of K and V", rate: bytes},
		price: func(p *hw.Profile, at observation) float64 {
			return hw.Seconds(p.Costs(at.model).BlockClose,
				sim.Work{Digests: 1, DigestTokens: at.At("tokens")})
		}}}
}

// setupClose prepares the write of a prompt's K and V to full blocks by the kernel that rotates Q
// and K. For probeClose it adds the digests of these blocks and their copy to the save buffer. An
// empty kernel runs before and after.
func (g *gpuRun) setupClose(p Point) *setup {
	m, n := g.model(p.Shape), p.At("tokens")
	if n%blockTokens != 0 {
		g.fail("%d tokens are not a whole number of blocks", n)
	}
	d, rope := int64(m.HeadDim), g.rope(m, n)
	count := int64(len(rope.slots))
	digest := &cuda.DigestArgs{
		Count: count, HeadDim: int32(d), BlockTokens: blockTokens,
		Pool: rope.args.Pool, Slot: rope.args.Table,
		Dst: upload(g, counted[int64](count)), Meta: g.poisoned(count * 2 * d * 2),
	}
	calls := []cuda.Operation{&cuda.EmptyArgs{}, &rope.args}
	staged := func() {}
	if p.Probe == probeClose {
		copies := g.toSaveBuffer(digest.Pool, rope.slots, 4*blockTokens*d)
		calls, staged = append(append(calls, digest), copies.calls...), copies.verify
	}
	calls = append(calls, &cuda.EmptyArgs{})
	verify := func() {
		g.checkRope(rope, g.r.Int64N(n))
		g.checkDigest(digest, rope.slots)
		staged()
	}
	bench := cuda.Bench{Clock: cuda.EventClock, Calls: calls}
	return &setup{bench: bench, settle: g.settling(p), verify: verify}
}

// checkDigest computes the digests of the blocks in slots, and recomputes some digests.
func (g *gpuRun) checkDigest(a *cuda.DigestArgs, slots []int32) {
	g.launch(a)
	d := int64(a.HeadDim)
	for _, i := range g.drawn(a.Count) {
		keys := g.floats(a.Pool+cuda.Ptr(int64(slots[i])*2*blockTokens*d*2), blockTokens*d)
		high, low := reference.Digest(keys, int(d))
		g.near(a.Meta+cuda.Ptr(i*2*d*2), append(high, low...), "digest of block %d", i)
	}
}

// toSaveBuffer prepares the copy of blocks to consecutive places of a save buffer, as the live loop
// launches it.
func (g *gpuRun) toSaveBuffer(pool cuda.Ptr, slots []int32, block int64) checked {
	n := int64(len(slots))
	from, to := make([]cuda.Ptr, n), row(g.poisoned(n*block), n, block)
	for i, slot := range slots {
		from[i] = pool + cuda.Ptr(int64(slot)*block)
	}
	op := g.blocksOp(probeSaveGPU, from, to, block).(*cuda.GPUScatterArgs)
	op.CTAs = int32(min(n, live.RingCTAs))
	return checked{[]cuda.Operation{op}, func() {
		g.transfer(op)
		want := make([]byte, block)
		for _, i := range g.drawn(n) {
			g.try(func() error { return cuda.Download(g.s, want, from[i]) })
			g.sameBytes(to[i], want, "block %d of the save buffer", i)
		}
	}}
}
