package main

import (
	"fmt"

	"sparseserve/cuda"
)

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

// spread repeats FlashD2H with fresh threads, whose places among the cores differ each time: first with few, then with enough of them.
func spread(b *bench) error {
	slab, pool, bytes, err := b.slabs()
	if err != nil {
		return err
	}
	const count, block = 16384, 16 << 10
	p, err := b.plan(slab, pool, bytes, count, block)
	if err != nil {
		return err
	}
	for _, threads := range []int{4, 8} {
		for i := range 5 {
			saver, err := b.SaverCreate(threads, 8<<20, 8)
			if err != nil {
				return err
			}
			t, err := b.timeBy(cuda.WallClock, 15, &cuda.SaveArgs{Saver: saver, Src: pool, Dst: p.hostHost.Ptr(), Count: count, BlockBytes: block})
			if err != nil {
				return err
			}
			row(fmt.Sprintf("FlashD2H, 16 KiB x %d, %d threads, saver %d", count, threads, i+1), t, "%.2f GB/s, %.3f of the large copy", gbs(count*block, t), gbs(count*block, t)/b.d2h)
			if err := b.SaverDestroy(saver); err != nil {
				return err
			}
		}
	}
	return nil
}
