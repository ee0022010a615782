package calibrate

import (
	"fmt"
	"math"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/cuda/reference"
)

// setupDigest readies the write of a prompt's K and V to full blocks anywhere, by
// the kernel that turns Q and K, and where the point asks for them the digests of
// these blocks, between two other kernels.
func (g *rig) setupDigest(s *cuda.Session, p Point) (*setup, error) {
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
func (g *rig) ringOp(s *cuda.Session, pool cuda.Ptr, slots []int32, block int64) (*cuda.GPUScatterArgs, func(*cuda.Session) error, error) {
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
