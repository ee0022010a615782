package calibrate

import (
	"errors"

	"github.com/sparseserve/sparseserve/cuda"
)

// blocksOp returns the transfer of blocks by the engine of a probe. Kernels read address arrays
// from the GPU, memcpy engines from the host.
func (g *gpuRun) blocksOp(probe string, src, dst []cuda.Ptr, blockBytes int64) cuda.Operation {
	a := cuda.BlocksArgs{Count: int64(len(src)), BlockBytes: blockBytes}
	switch probe {
	case probeLoadFlash, probeSaveGPU:
		a.Src, a.Dst = upload(g, src), upload(g, dst)
	default:
		a.Src, a.Dst = g.pin(src), g.pin(dst)
	}
	switch probe {
	case probeLoadFlash:
		return (*cuda.FlashH2DArgs)(&a)
	case probeSaveGPU:
		return (*cuda.GPUScatterArgs)(&a)
	}
	return (*cuda.MemcpyBlocksArgs)(&a)
}

// transfer runs a transfer once, on its own stream.
func (g *gpuRun) transfer(op cuda.Operation) {
	g.try(func() error {
		stream, err := g.s.StreamCreate(true)
		if err != nil {
			return err
		}
		err = g.s.Launch(op, stream)
		return errors.Join(err, g.s.StreamDestroy(stream), g.s.DeviceSync())
	})
}

// load prepares a load of random blocks of the pool to slots in another random order within
// slotBytes of device memory.
func (g *gpuRun) load(probe string, slots cuda.Ptr, slotBytes, count, block, pool int64) *work {
	from := g.scattered(count, block, pool)
	to := make([]cuda.Ptr, count)
	for i, n := range distinct(g.r, count, slotBytes/block) {
		to[i] = slots + cuda.Ptr(n*block)
	}
	op := g.blocksOp(probe, from.ptrs, to, block)
	return &work{calls: []cuda.Operation{op}, verify: func() {
		g.transfer(op)
		for _, i := range g.drawn(count) {
			_, want := g.pool.at(from.offsets[i])
			g.sameBytes(to[i], want[:block], "block %d", i)
		}
	}}
}

// freshLoads is the number of block sets that a load's samples rotate through. A server loads
// different blocks each time; the same blocks would be in caches. The last set is checked.
const freshLoads = 24

// setupLoad loads to random slots in as much device memory as the pool's size, or in half of the
// available memory. A server's slots are as far apart, and each copy looks up its own address.
func (g *gpuRun) setupLoad(p Point) *work {
	t := &work{}
	count, block, pool := p.At("blocks"), p.At("block_bytes"), p.At("pool_mib")*mib
	slotBytes := max(min(pool, g.slabBytes/2), count*block)
	slots := g.poisoned(slotBytes)
	for range freshLoads {
		c := g.load(p.Probe, slots, slotBytes, count, block, pool)
		t.rotation, t.verify = append(t.rotation, c.calls), c.verify
	}
	return t
}

// save prepares a save of a contiguous tensor to blocks of the pool; threads is used by FlashD2H.
func (g *gpuRun) save(probe string, tensor cuda.Ptr, to hostBlocks, block, threads int64) *work {
	count := int64(len(to.ptrs))
	from := row(tensor, count, block)
	var op cuda.Operation
	if probe == probeSaveFlash {
		op = &cuda.SaveArgs{
			Saver: g.saver(threads), Src: tensor, Dst: g.pin(to.ptrs), Count: count, BlockBytes: block,
		}
	} else {
		op = g.blocksOp(probe, from, to.ptrs, block)
	}
	return &work{calls: []cuda.Operation{op}, verify: func() {
		g.sync()
		indices := g.drawn(count)
		for _, i := range indices {
			_, b := g.pool.at(to.offsets[i])
			for j := range b[:block] {
				b[j] = 0xff
			}
		}
		g.transfer(op)
		for _, i := range indices {
			_, got := g.pool.at(to.offsets[i])
			g.sameBytes(from[i], got[:block], "block %d", i)
		}
	}}
}

// saveAnywhere saves to random blocks in the first bytes of the pool.
func (g *gpuRun) saveAnywhere(probe string, count, block, pool, threads int64) *work {
	to := g.scattered(count, block, pool)
	return g.save(probe, g.random(count*block/2), to, block, threads)
}

func (g *gpuRun) setupSave(p Point) *work {
	threads := int64(0)
	if p.Probe == probeSaveFlash {
		threads = p.At("threads")
	}
	return g.saveAnywhere(p.Probe, p.At("blocks"), p.At("block_bytes"), p.At("pool_mib")*mib, threads)
}
