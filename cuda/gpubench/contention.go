package main

import (
	"fmt"
	"slices"

	"github.com/sparseserve/sparseserve/cuda"
)

// contention is the slowdown of compute while KV moves: a linear and a prefill (compute bound) and
// a decode (memory bound), isolated and overlapped with each engine.
func contention(b *bench) {
	slab, pool := b.slabs()
	p := b.plan(slab, pool, 16384, 16<<10)
	saver := got(b.SaverCreate(16, 8<<20, 8))
	type named struct {
		what string
		op   cuda.Operation
	}
	work := []named{
		{"linear of 2048 tokens, 4096 x 11008", &cuda.LinearArgs{
			X: b.random(2048 * 4096), W: b.random(4096 * 11008), Y: b.random(2048 * 11008),
			Tokens: 2048, In: 4096, Out: 11008,
		}},
		{"block-sparse decode, batch 8", &b.decodeBatch(32, 32, equal(8, 32768), 64).args},
		{"prefill of 4096 tokens, prefix 4096", b.prefillArgs(chunk{4096, 4096, 32, 32})},
	}
	transfers := []named{{"FlashD2H", p.save(saver)}}
	for _, ctas := range []int32{4, 8, 132} {
		transfers = append(transfers,
			named{fmt.Sprintf("GPU scatter of %d CTAs", ctas), p.scatter(ctas)},
			named{fmt.Sprintf("FlashH2D of %d CTAs", ctas), p.load(ctas)})
	}
	for _, w := range work {
		// Many calls a sample, so that a sample spans several transfers.
		timed := cuda.Bench{Calls: slices.Repeat([]cuda.Operation{w.op}, 40), Warmup: 10,
			Repeats: 10}
		// Clocks follow power and temperature: each overlapped sample is between two isolated ones.
		before := got(b.Bench(timed))
		row(w.what+" x 40, isolated", summary(before), "")
		for _, other := range transfers {
			samples, ms, runs, err := b.BenchOverlapped(timed, other.op)
			must(err)
			after := got(b.Bench(timed))
			isolated, t := summary(append(before, after...)), summary(samples)
			row(w.what+" with "+other.what, t, "slowed by %.1f %%; %d transfers at %.1f GB/s",
				100*(t.median/isolated.median-1), runs, float64(p.count*p.block)/ms/1e6)
			before = after
		}
	}
	must(b.SaverDestroy(saver))
}
