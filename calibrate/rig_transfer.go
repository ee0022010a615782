package calibrate

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/sparseserve/sparseserve/cuda"
)

// setupCopy readies single large copies over the link, both ways.
func (g *rig) setupCopy(s *cuda.Session, p Point) (*setup, error) {
	n := p.At("bytes")
	if err := g.pool.grow(s, gib); err != nil {
		return nil, err
	}
	host, hostBytes := g.pool.at(0)
	near, err := g.random(s, n/2)
	if err != nil {
		return nil, err
	}
	down := &cuda.MemcpyArgs{Dst: host, Src: near, Bytes: n}
	t := &setup{bench: cuda.Bench{Clock: cuda.WallClock, Calls: []cuda.Operation{down}}, settle: g.settling(p)}
	t.verify = func(s *cuda.Session) error { return g.sameBytes(s, near, hostBytes[:n], down) }
	if p.Probe == probeD2H {
		return t, nil
	}
	far, err := g.poisoned(s, n)
	if err != nil {
		return nil, err
	}
	src, srcBytes := g.pool.at(gib / 2)
	up := &cuda.MemcpyArgs{Dst: far, Src: src, Bytes: n}
	upSame := func(s *cuda.Session) error { return g.sameBytes(s, far, srcBytes[:n], up) }
	switch p.Probe {
	case probeH2D:
		t.bench.Calls, t.verify = []cuda.Operation{up}, upSame
	case probeDuplexCopy:
		t.bench.Calls, t.beside, t.each = []cuda.Operation{up}, []cuda.Operation{down}, bothWays
		t.verify = func(s *cuda.Session) error {
			if err := upSame(s); err != nil {
				return err
			}
			return g.sameBytes(s, near, hostBytes[:n], down)
		}
	}
	return t, nil
}

// bothWays turns the times of equal bytes each way into the time of both at
// the sum of their rates: 2 B / (B/a + B/b).
func bothWays(a, b float64) float64 { return 2 / (1/a + 1/b) }

// sameBytes copies and compares device and host memory.
func (g *rig) sameBytes(s *cuda.Session, device cuda.Ptr, host []byte, args *cuda.MemcpyArgs) error {
	if err := s.Launch(args, 0); err != nil {
		return err
	}
	if err := s.StreamSync(0); err != nil {
		return err
	}
	got := make([]byte, len(host))
	return compareAfter(cuda.Download(s, got, device), got, host, "copy over the link")
}

func compareAfter(err error, got, want []byte, what string) error {
	if err == nil && !bytes.Equal(got, want) {
		return fmt.Errorf("%s: bytes differ", what)
	}
	return err
}

// blocksOp is a transfer of blocks by one of the engines.
func blocksOp(probe string, a cuda.BlocksArgs) cuda.Operation {
	switch probe {
	case probeLoadFlash:
		return (*cuda.FlashH2DArgs)(&a)
	case probeSaveGPU:
		return (*cuda.GPUScatterArgs)(&a)
	}
	return (*cuda.MemcpyBlocksArgs)(&a)
}

// runBlocks carries a transfer out once.
func (g *rig) runBlocks(s *cuda.Session, op cuda.Operation) error {
	stream, err := s.StreamCreate(true)
	if err != nil {
		return err
	}
	err = s.Launch(op, stream)
	return errors.Join(err, s.StreamDestroy(stream), s.DeviceSync())
}

// lists gives address arrays to an engine: kernels read them from the GPU, the
// memcpy forms from the host.
func (g *rig) lists(s *cuda.Session, probe string, src, dst []cuda.Ptr) (a cuda.BlocksArgs, err error) {
	a.Count = int64(len(src))
	put := g.note
	if probe == probeLoadFlash || probe == probeSaveGPU {
		put = func(p []cuda.Ptr) (cuda.Ptr, error) { return upload(g, s, p) }
	}
	if a.Src, err = put(src); err != nil {
		return a, err
	}
	a.Dst, err = put(dst)
	return a, err
}

// loadOp readies a load of blocks from anywhere in the pool to slots in
// another order, and its check.
func (g *rig) loadOp(s *cuda.Session, probe string, count, block, poolBytes int64) (cuda.Operation, func(*cuda.Session) error, error) {
	slots, err := g.poisoned(s, count*block)
	if err != nil {
		return nil, nil, err
	}
	return g.loadTo(s, probe, slots, count*block, count, block, poolBytes)
}

// loadTo is loadOp to slots anywhere in so much of the card's memory.
func (g *rig) loadTo(s *cuda.Session, probe string, slots cuda.Ptr, slotBytes, count, block, poolBytes int64) (cuda.Operation, func(*cuda.Session) error, error) {
	from, err := g.places(s, count, block, poolBytes)
	if err != nil {
		return nil, nil, err
	}
	to := make([]cuda.Ptr, count)
	for i, n := range g.distinct(count, slotBytes/block) {
		to[i] = slots + cuda.Ptr(n*block)
	}
	a, err := g.lists(s, probe, from.ptrs, to)
	if err != nil {
		return nil, nil, err
	}
	a.BlockBytes = block
	op := blocksOp(probe, a)
	verify := func(s *cuda.Session) error {
		if err := g.runBlocks(s, op); err != nil {
			return err
		}
		got := make([]byte, block)
		for _, i := range g.looked(count) {
			_, want := g.pool.at(from.offsets[i])
			if err := compareAfter(cuda.Download(s, got, to[i]), got, want[:block], fmt.Sprintf("block %d", i)); err != nil {
				return err
			}
		}
		return nil
	}
	return op, verify, nil
}

// freshLoads are how many sets of blocks a load's samples take turns with. A server
// loads other blocks each time; the same ones again are in the caches on their way: a
// memcpy each of 256 blocks of 16 KiB in a pool of 24 GiB takes 3.27 us a block of the
// same and 3.54 of others on an H200. Of the sets the last is checked.
const freshLoads = 24

// setupLoad loads to slots anywhere in as much of the card's memory as the pool has,
// or half of what there is: a server's are as far apart, and each copy looks its own up.
func (g *rig) setupLoad(s *cuda.Session, p Point) (*setup, error) {
	t := &setup{bench: cuda.Bench{Clock: cuda.WallClock}}
	pool := p.At("pool_mib") * mib
	room := max(min(pool, g.slabBytes/2), p.At("blocks")*p.At("block_bytes"))
	slots, err := g.poisoned(s, room)
	if err != nil {
		return nil, err
	}
	for range freshLoads {
		op, verify, err := g.loadTo(s, p.Probe, slots, room, p.At("blocks"), p.At("block_bytes"), pool)
		if err != nil {
			return nil, err
		}
		t.turns, t.verify = append(t.turns, op), verify
	}
	return t, nil
}

// saveOp readies a save of a contiguous tensor to blocks anywhere in the first
// bytes of the pool, and its check.
func (g *rig) saveOp(s *cuda.Session, probe string, count, block, poolBytes, threads int64) (cuda.Operation, func(*cuda.Session) error, error) {
	to, err := g.places(s, count, block, poolBytes)
	if err != nil {
		return nil, nil, err
	}
	return g.saveTo(s, probe, to, block, threads)
}

// saveTo is saveOp to given places.
func (g *rig) saveTo(s *cuda.Session, probe string, to place, block, threads int64) (cuda.Operation, func(*cuda.Session) error, error) {
	tensor, err := g.random(s, int64(len(to.ptrs))*block/2)
	if err != nil {
		return nil, nil, err
	}
	return g.saveFrom(s, probe, tensor, to, block, threads)
}

// saveFrom is saveTo of a tensor that is there.
func (g *rig) saveFrom(s *cuda.Session, probe string, tensor cuda.Ptr, to place, block, threads int64) (cuda.Operation, func(*cuda.Session) error, error) {
	count := int64(len(to.ptrs))
	from := row(tensor, count, block)
	var op cuda.Operation
	if probe == probeSaveFlash {
		saver, err := g.saver(s, threads)
		if err != nil {
			return nil, nil, err
		}
		dst, err := g.note(to.ptrs)
		if err != nil {
			return nil, nil, err
		}
		op = &cuda.SaveArgs{Saver: saver, Src: tensor, Dst: dst, Count: count, BlockBytes: block}
	} else {
		a, err := g.lists(s, probe, from, to.ptrs)
		if err != nil {
			return nil, nil, err
		}
		a.BlockBytes = block
		op = blocksOp(probe, a)
	}
	verify := func(s *cuda.Session) error {
		if err := s.DeviceSync(); err != nil {
			return err
		}
		look := g.looked(count)
		for _, i := range look {
			_, b := g.pool.at(to.offsets[i])
			for j := range b[:block] {
				b[j] = 0xff
			}
		}
		if err := g.runBlocks(s, op); err != nil {
			return err
		}
		want := make([]byte, block)
		for _, i := range look {
			_, got := g.pool.at(to.offsets[i])
			if err := compareAfter(cuda.Download(s, want, from[i]), got[:block], want, fmt.Sprintf("block %d", i)); err != nil {
				return err
			}
		}
		return nil
	}
	return op, verify, nil
}

func (g *rig) setupSave(s *cuda.Session, p Point) (*setup, error) {
	threads := int64(0)
	if p.Probe == probeSaveFlash {
		threads = p.At("threads")
	}
	op, verify, err := g.saveOp(s, p.Probe, p.At("blocks"), p.At("block_bytes"), p.At("pool_mib")*mib, threads)
	if err != nil {
		return nil, err
	}
	return &setup{bench: cuda.Bench{Calls: []cuda.Operation{op}, Clock: cuda.WallClock}, verify: verify}, nil
}

// setupDuplexKernel readies FlashH2D with the GPU scatter kernel beside it.
func (g *rig) setupDuplexKernel(s *cuda.Session, p Point) (*setup, error) {
	const block = 16 * kib
	load, loaded, err := g.loadOp(s, probeLoadFlash, p.At("bytes")/block, block, basePool*mib)
	if err != nil {
		return nil, err
	}
	save, saved, err := g.saveOp(s, probeSaveGPU, p.At("bytes")/block, block, basePool*mib, 0)
	if err != nil {
		return nil, err
	}
	return &setup{bench: cuda.Bench{Calls: []cuda.Operation{load}, Clock: cuda.WallClock}, beside: []cuda.Operation{save}, each: bothWays,
		verify: func(s *cuda.Session) error {
			if err := loaded(s); err != nil {
				return err
			}
			return saved(s)
		}}, nil
}
