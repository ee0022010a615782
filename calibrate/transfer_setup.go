package calibrate

import (
	"bytes"
	"errors"
	"fmt"
	"github.com/sparseserve/sparseserve/cuda"
)

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
func (g *gpuBench) runBlocks(s *cuda.Session, op cuda.Operation) error {
	stream, err := s.StreamCreate(true)
	if err != nil {
		return err
	}
	err = s.Launch(op, stream)
	return errors.Join(err, s.StreamDestroy(stream), s.DeviceSync())
}

// lists gives address arrays to an engine: kernels read them from the GPU, the
// memcpy forms from the host.
func (g *gpuBench) lists(s *cuda.Session, probe string, src, dst []cuda.Ptr) (a cuda.BlocksArgs, err error) {
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

func compareAfter(err error, got, want []byte, what string) error {
	if err == nil && !bytes.Equal(got, want) {
		return fmt.Errorf("%s: bytes differ", what)
	}
	return err
}

// loadOp readies a load of blocks from anywhere in the pool to slots in
// another order, and its check.
func (g *gpuBench) loadOp(s *cuda.Session, probe string, count, block, poolBytes int64) (cuda.Operation, func(*cuda.Session) error, error) {
	slots, err := g.poisoned(s, count*block)
	if err != nil {
		return nil, nil, err
	}
	return g.loadTo(s, probe, slots, count*block, count, block, poolBytes)
}

// loadTo is loadOp to slots anywhere in so much of the card's memory.
func (g *gpuBench) loadTo(s *cuda.Session, probe string, slots cuda.Ptr, slotBytes, count, block, poolBytes int64) (cuda.Operation, func(*cuda.Session) error, error) {
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

// freshLoads are how many sets of blocks a load's samples use in turn: a server loads other
// blocks each time, and the same ones again would be in caches. The last set is checked.
const freshLoads = 24

// setupLoad loads to slots anywhere in as much of the card's memory as the pool has,
// or half of what there is: a server's are as far apart, and each copy looks its own up.
func (g *gpuBench) setupLoad(s *cuda.Session, p Point) (*setup, error) {
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
func (g *gpuBench) saveOp(s *cuda.Session, probe string, count, block, poolBytes, threads int64) (cuda.Operation, func(*cuda.Session) error, error) {
	to, err := g.places(s, count, block, poolBytes)
	if err != nil {
		return nil, nil, err
	}
	return g.saveTo(s, probe, to, block, threads)
}

// saveTo is saveOp to given places.
func (g *gpuBench) saveTo(s *cuda.Session, probe string, to place, block, threads int64) (cuda.Operation, func(*cuda.Session) error, error) {
	tensor, err := g.random(s, int64(len(to.ptrs))*block/2)
	if err != nil {
		return nil, nil, err
	}
	return g.saveFrom(s, probe, tensor, to, block, threads)
}

// saveFrom is saveTo of a tensor that is there.
func (g *gpuBench) saveFrom(s *cuda.Session, probe string, tensor cuda.Ptr, to place, block, threads int64) (cuda.Operation, func(*cuda.Session) error, error) {
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

func (g *gpuBench) setupSave(s *cuda.Session, p Point) (*setup, error) {
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
