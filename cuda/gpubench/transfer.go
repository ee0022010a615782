package main

import (
	"errors"
	"fmt"

	"github.com/sparseserve/sparseserve/cuda"
)

// plan is count blocks scattered over a pinned slab, and their destinations in device memory.
type plan struct {
	count, block int64
	pool         cuda.Ptr // contiguous blocks in device memory
	// addresses on the GPU, for kernels; run: addresses of pool's blocks
	host, device, run cuda.Ptr
	hostHost, hostDev cuda.HostMemory // host and device in pinned memory, for the memcpy forms
}

// slabBytes is the pinned memory and the device memory that blocks are scattered over.
const slabBytes = 1 << 30

// slabs returns random pinned memory and device memory.
func (b *bench) slabs() (cuda.HostMemory, cuda.Ptr) {
	slab, pool := b.pinned(slabBytes, cuda.HugePages), b.random(slabBytes/2)
	must(b.Launch(&cuda.MemcpyArgs{Dst: slab.Ptr(), Src: pool, Bytes: slabBytes}, 0))
	return slab, pool
}

func (b *bench) plan(slab cuda.HostMemory, pool cuda.Ptr, count, block int64) *plan {
	addresses := func(base cuda.Ptr, order []int) cuda.HostMemory {
		m := b.pinned(8*count, cuda.DriverPages)
		for i := range count {
			at := i
			if order != nil {
				at = int64(order[i])
			}
			cuda.Slice[cuda.Ptr](m)[i] = base + cuda.Ptr(at*block)
		}
		return m
	}
	all := int(slabBytes / block)
	p := &plan{count: count, block: block, pool: pool}
	p.hostHost, p.hostDev = addresses(slab.Ptr(), b.r.Perm(all)), addresses(pool, b.r.Perm(all))
	p.host = upload(b, cuda.Slice[cuda.Ptr](p.hostHost))
	p.device = upload(b, cuda.Slice[cuda.Ptr](p.hostDev))
	p.run = upload(b, cuda.Slice[cuda.Ptr](addresses(pool, nil)))
	return p
}

// blocks copies the plan's blocks between arrays of addresses.
func (p *plan) blocks(src, dst cuda.Ptr, ctas int32) cuda.BlocksArgs {
	return cuda.BlocksArgs{Src: src, Dst: dst, Count: p.count, BlockBytes: p.block, CTAs: ctas}
}

func (p *plan) load(ctas int32) *cuda.FlashH2DArgs {
	a := cuda.FlashH2DArgs(p.blocks(p.host, p.device, ctas))
	return &a
}

func (p *plan) scatter(ctas int32) *cuda.GPUScatterArgs {
	a := cuda.GPUScatterArgs(p.blocks(p.run, p.host, ctas))
	return &a
}

func (p *plan) save(saver cuda.Saver) *cuda.SaveArgs {
	return &cuda.SaveArgs{
		Saver: saver, Src: p.pool, Dst: p.hostHost.Ptr(), Count: p.count, BlockBytes: p.block,
	}
}

func (p *plan) String() string { return fmt.Sprintf("%4d KiB x %d", p.block>>10, p.count) }

func (p *plan) gbs(t timing) float64 { return gbs(p.count*p.block, t) }

// loads times FlashH2D by block size and CTAs, against the memcpy forms.
func loads(b *bench) {
	slab, pool := b.slabs()
	one := func(count, block int64, memcpys bool) {
		p := b.plan(slab, pool, count, block)
		// Others may share the link: the large copy is measured again with each block size.
		large := b.time(5, &cuda.MemcpyArgs{Dst: pool, Src: slab.Ptr(), Bytes: slabBytes})
		b.h2d = gbs(slabBytes, large)
		t := b.time(20, p.load(0))
		row("FlashH2D, "+p.String(), t, "%.2f GB/s, %.3f of the large copy's %.1f",
			p.gbs(t), p.gbs(t)/b.h2d, b.h2d)
		if memcpys {
			b.memcpys(p, t)
		}
	}
	for _, kib := range []int64{1, 4, 16, 256} {
		one(min(8192, slabBytes/(kib<<10)), kib<<10, kib > 1)
	}
	one(65536, 4<<10, false)
	for _, ctas := range []int32{2, 4, 8, 132} {
		p := b.plan(slab, pool, 8192, 16<<10)
		t := b.time(20, p.load(ctas))
		row(fmt.Sprintf("FlashH2D, %v, %d CTAs", p, ctas), t, "%.2f GB/s, %.3f of the large copy",
			p.gbs(t), p.gbs(t)/b.h2d)
	}
}

// memcpys times the memcpy forms of a plan, against FlashH2D's time.
func (b *bench) memcpys(p *plan, flash timing) {
	a := p.blocks(p.hostHost.Ptr(), p.hostDev.Ptr(), 0)
	slow := b.timeBy(cuda.WallClock, 5, (*cuda.MemcpyBlocksArgs)(&a))
	row("memcpy per block, "+p.String(), slow, "%.2f GB/s, FlashH2D %.1fx",
		p.gbs(slow), slow.median/flash.median)
	stream := got(b.StreamCreate(true))
	err := b.Launch((*cuda.MemcpyBatchArgs)(&a), stream)
	must(b.StreamDestroy(stream))
	if errors.Is(err, cuda.Unsupported) {
		return
	}
	must(err)
	batch := b.timeBy(cuda.WallClock, 5, (*cuda.MemcpyBatchArgs)(&a))
	row("batched memcpy, "+p.String(), batch, "%.2f GB/s", p.gbs(batch))
}

// saves times FlashD2H by threads, against the GPU scatter and a memcpy per
// block.
func saves(b *bench) {
	slab, pool := b.slabs()
	for _, block := range []int64{4 << 10, 16 << 10, 64 << 10} {
		p := b.plan(slab, pool, min(16384, (256<<20)/block), block)
		for _, threads := range []int{1, 2, 4, 8, 16} {
			if block != 16<<10 && threads < 16 {
				continue
			}
			saver := got(b.SaverCreate(threads, 8<<20, 8))
			t := b.timeBy(cuda.WallClock, 15, p.save(saver))
			row(fmt.Sprintf("FlashD2H, %v, %d threads", p, threads), t,
				"%.2f GB/s, %.3f of the large copy", p.gbs(t), p.gbs(t)/b.d2h)
			must(b.SaverDestroy(saver))
		}
		t := b.time(15, p.scatter(0))
		row("GPU scatter, "+p.String(), t, "%.2f GB/s", p.gbs(t))
		memcpys := cuda.MemcpyBlocksArgs(p.blocks(p.hostDev.Ptr(), p.hostHost.Ptr(), 0))
		t = b.timeBy(cuda.WallClock, 5, &memcpys)
		row("memcpy per block, "+p.String(), t, "%.2f GB/s", p.gbs(t))
	}
}
