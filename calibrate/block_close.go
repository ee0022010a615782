package calibrate

import (
	"fmt"
	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/cuda/reference"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
	"math"
)

// blockClose is what blocks cost that become full: metadata and the copy to the save buffer.
type blockClose struct{}

const (
	probeRope  = "layer.rope"
	probeClose = "layer.close"
)

func (blockClose) probes() []Probe {
	return []Probe{
		{Name: probeRope, Means: "the two with rope of a prompt's tokens, K and V to their blocks, between them; " + gpuTime,
			Kernel: "ss_rope", Axes: []string{"tokens"}, shaped: true},
		{Name: probeClose, Means: "the same, and behind it the digests of these blocks and their copy to a save buffer; " + gpuTime,
			Kernel: "ss_gpu_scatter", Axes: []string{"tokens"}, shaped: true},
	}
}

func (blockClose) points(p *planner) {
	for _, shape := range shapes {
		for _, tokens := range pick(p, []int64{blockTokens, 1024, 2048, 4096, 8192}, []int64{blockTokens, 4096}) {
			p.add(stageBlockClose, point(probeRope, shape, tokens), point(probeClose, shape, tokens))
		}
	}
}

func (blockClose) prepare(g *gpuBench, p Point) (Timed, error) { return g.ready(p, g.setupDigest) }

// fit fits what blocks cost that a prompt has filled, their metadata and their
// copy to the save buffer, t = launch + bytes/rate, as what these kernels add to the one
// that has just written the blocks: of few blocks K is still in the L2.
func (blockClose) fit(s *Samples, p *hw.Profile, from source) []model {
	p.BlockClose = hw.BlockClose{}
	all := s.beyond(probeClose, probeRope)
	if len(all) < 4 {
		return nil
	}
	bytes := func(at datum) float64 { return tokens(at) * float64(at.model.LayerKVBytesPerToken()) }
	fewest := all.values("tokens")[0]
	fit, held := all.split(func(at datum) string { return at.Shape }, 2, func(at datum) bool { return at.At("tokens") == fewest })
	start, hbm := linear(fit, one, bytes), p.GPU.HBMBandwidth.SI()
	c := refine(fit, []float64{math.Max(start[0], 1e-6), 1 / math.Max(start[1], 1/hbm)}, []bound{callBound, {rateBound.low, hbm}}, func(c []float64, at datum) float64 {
		return c[0] + bytes(at)/c[1]
	})
	const what = "metadata of a prompt's full blocks and their copy to the save buffer, after the write of their K and V"
	p.BlockClose = hw.BlockClose{Launch: from.figure(c[0]*1e6, "us", what), Rate: from.figure(c[1]*1e-9, "GB/s", what+", bytes of K and V")}
	return []model{{name: "block_close", fit: fit, held: held, draw: picture{x: bytes, xLabel: "bytes of K and V", rate: bytes},
		price: func(p *hw.Profile, at datum) float64 {
			return hw.Seconds(p.Costs(at.model).BlockClose, sim.Work{Digests: 1, DigestTokens: at.At("tokens")})
		}}}
}

// beyond is what a probe of some tokens takes longer than another of as many of the
// same shape.
func (s *Samples) beyond(probe, without string) (d data) {
	less := map[string]map[int64]datum{}
	for _, at := range s.of(without) {
		if less[at.Shape] == nil {
			less[at.Shape] = map[int64]datum{}
		}
		less[at.Shape][at.At("tokens")] = at
	}
	for _, at := range s.of(probe) {
		if without, ok := less[at.Shape][at.At("tokens")]; ok && at.seconds > without.seconds {
			at.seconds -= without.seconds
			at.within = lessOpen(at.within, without.within)
			d = append(d, at)
		}
	}
	return d
}

// setupDigest readies the write of a prompt's K and V to full blocks anywhere, by
// the kernel that turns Q and K, and where the point asks for them the digests of
// these blocks, between two other kernels.
func (g *gpuBench) setupDigest(s *cuda.Session, p Point) (*setup, error) {
	m, err := shapeModel(p.Shape)
	if err != nil {
		return nil, err
	}
	n, d, hq, hk := p.At("tokens"), int64(m.HeadDim), int64(m.QHeads), int64(m.KVHeads)
	if n%blockTokens != 0 {
		return nil, fmt.Errorf("%d tokens fill no whole number of blocks", n)
	}
	blocks := n / blockTokens
	rope := &cuda.RopeArgs{Tokens: int32(n), HeadsQ: int32(hq), HeadsKV: int32(hk), HeadDim: int32(d), BlockTokens: blockTokens, HeadStride: blocks}
	a := &cuda.DigestArgs{Count: blocks * hk, HeadDim: int32(d), BlockTokens: blockTokens}
	slots, places, positions, turns := make([]int32, blocks*hk), make([]int64, blocks*hk), make([]int32, n), make([]float32, d/2)
	for i, slot := range g.r.Perm(len(slots)) {
		slots[i], places[i] = int32(slot), int64(i)
	}
	for i := range positions {
		positions[i] = int32(i)
	}
	for i := range turns {
		turns[i] = float32(math.Pow(ropeBase, -2*float64(i)/float64(d)))
	}
	set := g.setter(&err)
	set(&rope.QKV, func() (cuda.Ptr, error) { return g.random(s, n*(hq+2*hk)*d) })
	set(&rope.Position, func() (cuda.Ptr, error) { return upload(g, s, positions) })
	set(&rope.InvFreq, func() (cuda.Ptr, error) { return upload(g, s, turns) })
	set(&rope.Pool, func() (cuda.Ptr, error) { return g.poisoned(s, int64(len(slots))*2*blockTokens*d*2) })
	set(&rope.Table, func() (cuda.Ptr, error) { return upload(g, s, slots) })
	set(&a.Dst, func() (cuda.Ptr, error) { return upload(g, s, places) })
	set(&a.Meta, func() (cuda.Ptr, error) { return g.poisoned(s, int64(len(slots))*2*d*2) })
	if err != nil {
		return nil, err
	}
	a.Pool, a.Slot = rope.Pool, rope.Table
	calls := []cuda.Operation{&cuda.EmptyArgs{}, rope, &cuda.EmptyArgs{}}
	ringed := func(*cuda.Session) error { return nil }
	if p.Probe == probeClose {
		var ring *cuda.GPUScatterArgs
		if ring, ringed, err = g.ringOp(s, a.Pool, slots, 4*blockTokens*d); err != nil {
			return nil, err
		}
		calls = []cuda.Operation{&cuda.EmptyArgs{}, rope, a, ring, &cuda.EmptyArgs{}}
	}
	return &setup{bench: cuda.Bench{Clock: cuda.EventClock, Calls: calls}, settle: g.settling(p), verify: func(s *cuda.Session) error {
		if err := g.checkRope(s, rope, slots, turns, g.r.Int64N(n)); err != nil {
			return err
		}
		if err := s.Launch(a, 0); err != nil {
			return err
		}
		for _, i := range g.looked(int64(len(slots))) {
			keys, err := floats(s, a.Pool+cuda.Ptr(int64(slots[i])*2*blockTokens*d*2), blockTokens*d)
			if err != nil {
				return err
			}
			got, err := halves(s, a.Meta+cuda.Ptr(i*2*d*2), 2*d)
			if err != nil {
				return err
			}
			high, low := reference.Digest(keys, int(d))
			if err := near(fmt.Sprintf("digest of block %d", i), got, append(high, low...)); err != nil {
				return err
			}
		}
		return ringed(s)
	}}, nil
}

// ringOp readies the copy of blocks to a save buffer, one after another there, as
// the live loop launches it, and its check.
func (g *gpuBench) ringOp(s *cuda.Session, pool cuda.Ptr, slots []int32, block int64) (*cuda.GPUScatterArgs, func(*cuda.Session) error, error) {
	n := int64(len(slots))
	buffer, err := g.poisoned(s, n*block)
	if err != nil {
		return nil, nil, err
	}
	from, to := make([]cuda.Ptr, n), row(buffer, n, block)
	for i, slot := range slots {
		from[i] = pool + cuda.Ptr(int64(slot)*block)
	}
	a, err := g.lists(s, probeSaveGPU, from, to)
	if err != nil {
		return nil, nil, err
	}
	a.BlockBytes, a.CTAs = block, int32(min(n, live.RingCTAs))
	op := (*cuda.GPUScatterArgs)(&a)
	return op, func(s *cuda.Session) error {
		if err := g.runBlocks(s, op); err != nil {
			return err
		}
		got, want := make([]byte, block), make([]byte, block)
		for _, i := range g.looked(n) {
			if err := cuda.Download(s, want, from[i]); err != nil {
				return err
			}
			if err := compareAfter(cuda.Download(s, got, to[i]), got, want, fmt.Sprintf("block %d of the save buffer", i)); err != nil {
				return err
			}
		}
		return nil
	}, nil
}
