package main

import (
	"fmt"

	"github.com/sparseserve/sparseserve/cuda"
)

// selection times scores and top-k of a 32k context against the dense attention that they replace.
func selection(b *bench) {
	const blocks, k = 1024, 64
	for _, c := range []struct{ requests, headsQ, headsKV int }{{1, 32, 32}, {8, 32, 32}, {8, 32,
		8}} {
		d := b.decodeBatch(c.headsQ, c.headsKV, equal(c.requests, blocks*blockTokens), blocks)
		dense := b.time(20, &d.args)
		what := fmt.Sprintf("batch %d, %d/%d heads", c.requests, c.headsQ, c.headsKV)
		row("dense decode of 32k, "+what, dense, "%.2f TB/s", gbs(d.bytes, dense)/1e3)
		first, count := make([]int64, d.units), make([]int32, d.units)
		for u := range first {
			first[u], count[u] = int64(u*blocks), blocks
		}
		metaBytes := int64(d.units*blocks) * 4 * headDim
		s := cuda.ScoresArgs{
			Q: d.args.Q, Meta: b.random(int(metaBytes / 2)), First: upload(b, first),
			Count: upload(b, count), Scores: b.alloc(int64(d.units*blocks) * 4),
			Batch: d.args.Batch, HeadsQ: d.args.HeadsQ, HeadsKV: d.args.HeadsKV, HeadDim: headDim,
			ScoreStride: blocks, MaxBlocks: blocks,
		}
		top := cuda.TopKArgs{
			Scores: s.Scores, Blocks: s.Count, List: b.alloc(int64(d.units) * k * 4),
			Count: b.alloc(int64(d.units) * 4), Units: int32(d.units), ScoreStride: blocks,
			ListStride: k, K: k, Sink: 2, Window: 2,
		}
		fused := &cuda.SelectArgs{Scores: s, TopK: top, Arrived: b.zeros(int64(d.units) * 4)}
		for _, v := range []struct {
			what  string
			calls []cuda.Operation
		}{
			{"scores", []cuda.Operation{&s}},
			{"top-k", []cuda.Operation{&top}},
			{"scores, then top-k", []cuda.Operation{&s, &top}},
			{"scores and top-k in one launch", []cuda.Operation{fused}},
		} {
			t := b.time(50, v.calls...)
			row(v.what+", "+what, t, "%.1f %% of dense, %.2f TB/s of metadata",
				100*t.median/dense.median, gbs(metaBytes, t)/1e3)
		}
		b.free()
	}
}
