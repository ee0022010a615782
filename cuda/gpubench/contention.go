package main

import (
	"fmt"

	"sparseserve/cuda"
)

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
