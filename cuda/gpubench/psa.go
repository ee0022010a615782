package main

import (
	"fmt"
	"slices"

	"sparseserve/cuda"
)

// half is a threshold that is passed once half of the blocks are done: blocks of random data weigh
// about the same.
const half = 0.45

// psa compares PSA with the top-k kernel over the same blocks: epsilon 1 attends to all of them.
func psa(b *bench) {
	for _, c := range []struct{ requests, headsQ, headsKV int }{
		{1, 32, 32}, {8, 32, 32}, {32, 32, 32}, {1, 32, 8},
	} {
		d := b.decodeBatch(c.headsQ, c.headsKV, equal(c.requests, 32768), 64)
		top := b.time(50, &d.args)
		row(fmt.Sprintf("top-k kernel, batch %d, %d/%d heads, 64 blocks a head",
			c.requests, c.headsQ, c.headsKV), top, "%.2f TB/s", gbs(d.bytes, top)/1e3)
		for _, micro := range []int{4, 8, 16} {
			compare := func(what string, calls ...cuda.Operation) {
				t := b.time(50, calls...)
				row(fmt.Sprintf("PSA, microbatches of %d, %s", micro, what), t,
					"%.2fx the top-k kernel", t.median/top.median)
			}
			args := b.psaArgs(d, micro, 1)
			compare("one launch", args)
			compare("one launch, half of the blocks", b.psaArgs(d, micro, half))
			var steps []cuda.Operation
			for i := range 64 / micro {
				step := *args
				step.First, step.Steps = int32(i), 1
				steps = append(steps, &step)
			}
			compare("a launch each", steps...)
		}
		b.free()
	}
}

// psaArgs is PSA over the batch's lists.
func (b *bench) psaArgs(d *batch, micro int, epsilon float32) *cuda.PSAArgs {
	a := d.args
	p := &cuda.PSAArgs{
		Q: a.Q, Pool: a.Pool, Table: a.Table, Context: a.Context, Order: a.List, Count: a.Count,
		Out: a.Out, Batch: a.Batch, HeadsQ: a.HeadsQ, HeadsKV: a.HeadsKV, HeadDim: a.HeadDim,
		BlockTokens: a.BlockTokens, TableStride: a.TableStride, OrderStride: a.ListStride,
		Micro: int32(micro), Steps: (a.MaxBlocks + int32(micro) - 1) / int32(micro), Scale: a.Scale,
		Epsilon: epsilon, Used: b.alloc(int64(d.units) * 4), Done: b.alloc(int64(d.units) * 4),
	}
	p.State = b.workspace(p)
	return p
}

// psaPipeline compares loads and compute in two streams with one after the other: one block in so
// many of a batch is in host memory.
func psaPipeline(b *bench) {
	for _, every := range []int{16, 64} {
		pipelineOf(b, every)
		b.free()
	}
}

func pipelineOf(b *bench, every int) {
	const requests, chosen, micro, steps, slabBlocks = 8, 64, 16, 4, 1 << 30 / blockBytes
	d := b.decodeBatch(32, 32, equal(requests, 32768), chosen)
	flag := b.pinned(4, cuda.DriverPages).Ptr()
	all, early := b.psaArgs(d, micro, 1), b.psaArgs(d, micro, half)
	all.Flag, early.Flag = flag, flag
	slab := b.pinned(slabBlocks*blockBytes, cuda.HugePages).Ptr()
	first := b.pinned(8*(steps+1), cuda.DriverPages)
	var src, dst []cuda.Ptr
	var owner []int32
	places := b.r.Perm(slabBlocks)
	for step := range steps {
		for range d.units * micro / every {
			src = append(src, slab+cuda.Ptr(places[len(src)]*blockBytes))
			dst = append(dst, all.Pool+cuda.Ptr(int64(b.r.IntN(d.units*chosen))*blockBytes))
			owner = append(owner, int32(len(src)%d.units))
		}
		cuda.Slice[int64](first)[step+1] = int64(len(src))
	}
	cuda.Slice[int64](first)[0] = 0
	p := &cuda.PSAPipelineArgs{
		PSA: all, LoadFirst: first.Ptr(), BlockBytes: blockBytes, Microbatches: steps, Depth: 2,
		Src: upload(b, src), Dst: upload(b, dst), Owner: upload(b, owner),
	}
	stopping := *p
	stopping.PSA = early
	load := &cuda.FlashH2DArgs{
		Src: p.Src, Dst: p.Dst, Count: int64(len(src)), BlockBytes: blockBytes,
	}
	for _, c := range []struct {
		what  string
		calls []cuda.Operation
	}{
		{"loads alone", []cuda.Operation{load}},
		{"PSA alone", []cuda.Operation{all}},
		{"loads, then PSA", []cuda.Operation{load, all}},
		{"pipelined", []cuda.Operation{p}},
		{"loads, then PSA of half", []cuda.Operation{load, early}},
		{"pipelined PSA of half", []cuda.Operation{&stopping}},
	} {
		t := b.timeBy(cuda.WallClock, 30, c.calls...)
		row(fmt.Sprintf("PSA, batch %d, %d of %d blocks loaded: %s",
			requests, len(src), d.units*chosen, c.what), t, "")
	}
	used := make([]int32, d.units)
	must(cuda.Download(b.Session, used, early.Used))
	fmt.Printf("  the last attended to %d to %d of %d blocks a unit\n",
		slices.Min(used), slices.Max(used), chosen)
}
