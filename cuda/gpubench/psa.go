package main

import (
	"fmt"

	"github.com/sparseserve/sparseserve/cuda"
)

// half is a threshold that is reached after half of the blocks: blocks of random data have about
// equal weight.
const half = 0.45

// psa compares PSA with the top-k kernel over the same blocks: epsilon 1 attends to every block.
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
