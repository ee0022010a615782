package main

import (
	"errors"
	"fmt"
	"slices"

	"sparseserve/cuda"
)

// link measures the ceilings: large copies over the host link and inside HBM, and the cost of a launch.
func link(b *bench) error {
	const bytes = 1 << 30
	host, err := b.pinned(bytes, cuda.HugePages)
	if err != nil {
		return err
	}
	near, err := b.random(bytes) // 2 GiB
	if err != nil {
		return err
	}
	far, err := b.alloc(2 * bytes)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		what  string
		args  cuda.MemcpyArgs
		moved int64
		rate  *float64
	}{
		{"D2H, one memcpy of 1 GiB", cuda.MemcpyArgs{Dst: host.Ptr(), Src: near, Bytes: bytes}, bytes, &b.d2h},
		{"H2D, one memcpy of 1 GiB", cuda.MemcpyArgs{Dst: near, Src: host.Ptr(), Bytes: bytes}, bytes, &b.h2d},
		{"device copy of 2 GiB, read + write", cuda.MemcpyArgs{Dst: far, Src: near, Bytes: 2 * bytes}, 4 * bytes, &b.copy},
	} {
		t, err := b.time(10, &c.args)
		if err != nil {
			return err
		}
		*c.rate = gbs(c.moved, t)
		row(c.what, t, "%.1f GB/s", *c.rate)
	}
	for _, c := range []struct {
		what  string
		clock cuda.Clock
	}{{"empty kernel, submit", cuda.SubmitClock}, {"empty kernel, submit and synchronise", cuda.WallClock}, {"empty kernel, GPU time between events", cuda.EventClock}} {
		t, err := b.timeBy(c.clock, 200, &cuda.EmptyArgs{})
		if err != nil {
			return err
		}
		row(c.what, t, "%.1f us", t.median*1e3)
	}
	return nil
}

// plan is count blocks scattered over a pinned slab, and where each goes in device memory.
type plan struct {
	count, block       int64
	host, device       cuda.Ptr        // address arrays on the GPU, for kernels
	hostHost, hostDev  cuda.HostMemory // the same in pinned memory, for the memcpy forms
	contiguous         cuda.Ptr        // a device tensor of all blocks
	contiguousOnDevice cuda.Ptr        // addresses of its blocks, on the GPU
}

func (b *bench) plan(slab cuda.HostMemory, pool cuda.Ptr, poolBytes, count, block int64) (*plan, error) {
	p := &plan{count: count, block: block, contiguous: pool}
	var err error
	if p.hostHost, err = b.pinned(8*count, cuda.DriverPages); err != nil {
		return nil, err
	}
	if p.hostDev, err = b.pinned(8*count, cuda.DriverPages); err != nil {
		return nil, err
	}
	from, to := b.rand().Perm(len(slab.Bytes())/int(block)), b.rand().Perm(int(poolBytes/block))
	run := make([]cuda.Ptr, count)
	for i := range run {
		cuda.Slice[cuda.Ptr](p.hostHost)[i] = slab.Ptr() + cuda.Ptr(int64(from[i])*block)
		cuda.Slice[cuda.Ptr](p.hostDev)[i] = pool + cuda.Ptr(int64(to[i])*block)
		run[i] = pool + cuda.Ptr(int64(i)*block)
	}
	if p.host, err = upload(b, cuda.Slice[cuda.Ptr](p.hostHost)); err != nil {
		return nil, err
	}
	if p.device, err = upload(b, cuda.Slice[cuda.Ptr](p.hostDev)); err != nil {
		return nil, err
	}
	p.contiguousOnDevice, err = upload(b, run)
	return p, err
}

// slabs returns 1 GiB of pinned memory and of device memory, random.
func (b *bench) slabs() (cuda.HostMemory, cuda.Ptr, int64, error) {
	const bytes = 1 << 30
	slab, err := b.pinned(bytes, cuda.HugePages)
	if err != nil {
		return slab, 0, 0, err
	}
	pool, err := b.random(bytes / 2)
	if err != nil {
		return slab, 0, 0, err
	}
	if err := b.Memcpy(&cuda.MemcpyArgs{Dst: slab.Ptr(), Src: pool, Bytes: bytes}, 0); err != nil {
		return slab, 0, 0, err
	}
	return slab, pool, bytes, b.DeviceSync()
}

func loads(b *bench) error {
	slab, pool, bytes, err := b.slabs()
	if err != nil {
		return err
	}
	one := func(count, block int64, memcpys bool) error {
		p, err := b.plan(slab, pool, bytes, count, block)
		if err != nil {
			return err
		}
		onGPU := cuda.BlocksArgs{Src: p.host, Dst: p.device, Count: count, BlockBytes: block}
		onCPU := cuda.BlocksArgs{Src: p.hostHost.Ptr(), Dst: p.hostDev.Ptr(), Count: count, BlockBytes: block}
		what := fmt.Sprintf("%4d KiB x %d", block>>10, count)
		t, err := b.time(20, (*cuda.FlashH2DArgs)(&onGPU))
		if err != nil {
			return err
		}
		row("FlashH2D, "+what, t, "%.2f GB/s, %.3f of the large copy", gbs(count*block, t), gbs(count*block, t)/b.h2d)
		if !memcpys {
			return nil
		}
		slow, err := b.timeBy(cuda.WallClock, 5, (*cuda.MemcpyBlocksArgs)(&onCPU))
		if err != nil {
			return err
		}
		row("memcpy per block, "+what, slow, "%.2f GB/s, FlashH2D %.1fx", gbs(count*block, slow), slow.median/t.median)
		batch, err := b.timeBy(cuda.WallClock, 5, (*cuda.MemcpyBatchArgs)(&onCPU))
		if errors.Is(err, cuda.Unsupported) {
			return nil
		}
		if err != nil {
			return err
		}
		row("batched memcpy, "+what, batch, "%.2f GB/s", gbs(count*block, batch))
		return nil
	}
	for _, block := range []int64{1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20} {
		if err := one(min(8192, (1<<30)/block), block, block == 4<<10 || block == 16<<10 || block == 256<<10); err != nil {
			return err
		}
	}
	if err := one(65536, 4<<10, false); err != nil {
		return err
	}
	for _, count := range []int64{1, 16, 64, 256, 1024} {
		if err := one(count, 16<<10, false); err != nil {
			return err
		}
	}
	return loadsByCTAs(b, slab, pool, bytes)
}

// loadsByCTAs shows how few CTAs fill the link.
func loadsByCTAs(b *bench, slab cuda.HostMemory, pool cuda.Ptr, bytes int64) error {
	for _, block := range []int64{1 << 10, 16 << 10} {
		p, err := b.plan(slab, pool, bytes, 8192, block)
		if err != nil {
			return err
		}
		for _, ctas := range []int32{2, 4, 8, 16, 32, 64, 132, 264} {
			t, err := b.time(20, (*cuda.FlashH2DArgs)(&cuda.BlocksArgs{Src: p.host, Dst: p.device, Count: p.count, BlockBytes: block, CTAs: ctas}))
			if err != nil {
				return err
			}
			row(fmt.Sprintf("FlashH2D, %4d KiB x %d, %d CTAs", block>>10, p.count, ctas), t, "%.2f GB/s, %.3f of the large copy", gbs(p.count*block, t), gbs(p.count*block, t)/b.h2d)
		}
	}
	return nil
}

// pools shows what a large pinned pool costs: blocks scattered over more memory than the GPU's address translation caches reach, in random
// order and in the order of their addresses.
func pools(b *bench) error {
	for _, size := range []struct {
		gib   int64
		pages cuda.HostPages
	}{{1, cuda.DriverPages}, {16, cuda.DriverPages}, {1, cuda.HugePages}, {16, cuda.HugePages}} {
		slab, err := b.pinned(size.gib<<30, size.pages)
		if err != nil {
			return err
		}
		pool, err := b.random(1 << 29)
		if err != nil {
			return err
		}
		for _, sorted := range []bool{false, true} {
			p, err := b.plan(slab, pool, 1<<30, 8192, 16<<10)
			if err != nil {
				return err
			}
			order := map[cuda.HostPages]string{cuda.DriverPages: "driver's pages", cuda.HugePages: "huge pages"}[size.pages]
			if sorted {
				order += ", by address"
				slices.Sort(cuda.Slice[cuda.Ptr](p.hostHost))
				if p.host, err = upload(b, cuda.Slice[cuda.Ptr](p.hostHost)); err != nil {
					return err
				}
			}
			t, err := b.time(20, (*cuda.FlashH2DArgs)(&cuda.BlocksArgs{Src: p.host, Dst: p.device, Count: p.count, BlockBytes: p.block}))
			if err != nil {
				return err
			}
			row(fmt.Sprintf("FlashH2D, 16 KiB x 8192 of %d GiB, %s", size.gib, order), t, "%.2f GB/s, %.3f of the large copy", gbs(p.count*p.block, t), gbs(p.count*p.block, t)/b.h2d)
		}
		if err := b.freeAll(); err != nil {
			return err
		}
	}
	return nil
}

// savers are the shapes of FlashD2H that are timed: threads, chunk, stages.
var savers = []struct {
	threads int
	chunk   int64
	stages  int
}{{1, 8 << 20, 8}, {2, 8 << 20, 8}, {4, 8 << 20, 8}, {8, 8 << 20, 8}, {16, 2 << 20, 8}, {16, 4 << 20, 8}, {16, 8 << 20, 8}, {16, 4 << 20, 16}}

func saves(b *bench) error {
	slab, pool, bytes, err := b.slabs()
	if err != nil {
		return err
	}
	for _, block := range []int64{4 << 10, 16 << 10, 64 << 10} {
		count := min(16384, (256<<20)/block)
		p, err := b.plan(slab, pool, bytes, count, block)
		if err != nil {
			return err
		}
		what := fmt.Sprintf("%2d KiB x %d", block>>10, count)
		for _, c := range savers {
			if block != 16<<10 && (c.threads != 16 || c.chunk != 8<<20) {
				continue
			}
			saver, err := b.SaverCreate(c.threads, c.chunk, c.stages)
			if err != nil {
				return err
			}
			t, err := b.timeBy(cuda.WallClock, 15, &cuda.SaveArgs{Saver: saver, Src: pool, Dst: p.hostHost.Ptr(), Count: count, BlockBytes: block})
			if err != nil {
				return err
			}
			row(fmt.Sprintf("FlashD2H, %s, %d threads, %d x %d MiB", what, c.threads, c.stages, c.chunk>>20), t, "%.2f GB/s, %.3f of the large copy", gbs(count*block, t), gbs(count*block, t)/b.d2h)
			if err := b.SaverDestroy(saver); err != nil {
				return err
			}
		}
		scatter := cuda.BlocksArgs{Src: p.contiguousOnDevice, Dst: p.host, Count: count, BlockBytes: block}
		t, err := b.time(15, (*cuda.GPUScatterArgs)(&scatter))
		if err != nil {
			return err
		}
		row("GPU scatter, "+what, t, "%.2f GB/s", gbs(count*block, t))
		memcpys := cuda.BlocksArgs{Src: p.hostDev.Ptr(), Dst: p.hostHost.Ptr(), Count: count, BlockBytes: block}
		if t, err = b.timeBy(cuda.WallClock, 5, (*cuda.MemcpyBlocksArgs)(&memcpys)); err != nil {
			return err
		}
		row("memcpy per block, "+what, t, "%.2f GB/s", gbs(count*block, t))
	}
	return nil
}

// contention is the slowdown of compute while KV moves: a compute-bound linear and a memory-bound decode, alone and beside each engine.
func contention(b *bench) error {
	slab, pool, bytes, err := b.slabs()
	if err != nil {
		return err
	}
	p, err := b.plan(slab, pool, bytes, 16384, 16<<10)
	if err != nil {
		return err
	}
	saver, err := b.SaverCreate(16, 8<<20, 8)
	if err != nil {
		return err
	}
	work := map[string]cuda.Operation{}
	if work["linear of 2048 tokens, 4096 x 11008"], err = b.linear(2048, 4096, 11008); err != nil {
		return err
	}
	d, err := b.sparse(8, 32, 32, 64)
	if err != nil {
		return err
	}
	work["block-sparse decode, batch 8"] = &d.args
	a, err := b.prefillArgs(4096, 4096, 32, 32)
	if err != nil {
		return err
	}
	work["prefill of 4096 tokens, prefix 4096"] = a
	type transfer struct {
		what string
		op   cuda.Operation
	}
	beside := []transfer{
		{"FlashD2H", &cuda.SaveArgs{Saver: saver, Src: pool, Dst: p.hostHost.Ptr(), Count: p.count, BlockBytes: p.block}},
	}
	for _, ctas := range []int32{4, 8, 132} {
		beside = append(beside, transfer{fmt.Sprintf("GPU scatter of %d CTAs", ctas), (*cuda.GPUScatterArgs)(&cuda.BlocksArgs{Src: p.contiguousOnDevice, Dst: p.host, Count: p.count, BlockBytes: p.block, CTAs: ctas})},
			transfer{fmt.Sprintf("FlashH2D of %d CTAs", ctas), (*cuda.FlashH2DArgs)(&cuda.BlocksArgs{Src: p.host, Dst: p.device, Count: p.count, BlockBytes: p.block, CTAs: ctas})})
	}
	for what, op := range work {
		// Many calls a sample, so that a sample spans several transfers.
		calls := make([]cuda.Operation, 40)
		for i := range calls {
			calls[i] = op
		}
		timed := cuda.Bench{Calls: calls, Warmup: 10, Repeats: 10}
		// Clocks follow power and temperature: every measurement beside a transfer stands between two alone.
		before, err := b.Bench(timed)
		if err != nil {
			return err
		}
		row(what+" x 40, alone", summary(before), "")
		for _, other := range beside {
			samples, ms, runs, err := b.BenchBeside(timed, other.op)
			if err != nil {
				return err
			}
			after, err := b.Bench(timed)
			if err != nil {
				return err
			}
			alone := summary(append(before, after...))
			t := summary(samples)
			row(what+" beside "+other.what, t, "slowed by %.1f %%; %d transfers at %.1f GB/s", 100*(t.median/alone.median-1), runs, float64(p.count*p.block)/ms/1e6)
			before = after
		}
	}
	return b.SaverDestroy(saver)
}
