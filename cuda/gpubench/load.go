package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"sparseserve/cuda"
)

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
		// The link is shared with other machines of the host: the large copy is measured again beside each block size.
		large, err := b.time(5, &cuda.MemcpyArgs{Dst: pool, Src: slab.Ptr(), Bytes: bytes})
		if err != nil {
			return err
		}
		b.h2d = gbs(bytes, large)
		t, err := b.time(20, (*cuda.FlashH2DArgs)(&onGPU))
		if err != nil {
			return err
		}
		row("FlashH2D, "+what, t, "%.2f GB/s, %.3f of the large copy's %.1f", gbs(count*block, t), gbs(count*block, t)/b.h2d, b.h2d)
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
		start := time.Now()
		slab, err := b.pinned(size.gib<<30, size.pages)
		if err != nil {
			return err
		}
		pinning := time.Since(start).Seconds() / float64(size.gib)
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
			row(fmt.Sprintf("FlashH2D, 16 KiB x 8192 of %d GiB, %s", size.gib, order), t, "%.2f GB/s; pinned in %.2f s a GiB", gbs(p.count*p.block, t), pinning)
		}
		if err := b.freeAll(); err != nil {
			return err
		}
	}
	return nil
}
