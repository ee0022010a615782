package main

import (
	"fmt"

	"sparseserve/cuda"
)

// selection times scores and top-k of a 32k context against the dense attention that they replace.
func selection(b *bench) error {
	const blocks, k = 1024, 64
	for _, c := range []struct{ requests, headsQ, headsKV int }{{1, 32, 32}, {8, 32, 32}, {8, 32, 8}} {
		d, err := b.decodeBatch(c.headsQ, c.headsKV, equal(c.requests, blocks*blockTokens), blocks)
		if err != nil {
			return err
		}
		dense, err := b.time(20, &d.args)
		if err != nil {
			return err
		}
		what := fmt.Sprintf("batch %d, %d/%d heads", c.requests, c.headsQ, c.headsKV)
		row("dense decode of 32k, "+what, dense, "%.2f TB/s", gbs(d.bytes, dense)/1e3)
		first, count := make([]int64, d.units), make([]int32, d.units)
		for u := range first {
			first[u], count[u] = int64(u*blocks), blocks
		}
		metaBytes := int64(d.units*blocks) * 4 * headDim
		s := cuda.ScoresArgs{Q: d.args.Q, Batch: d.args.Batch, HeadsQ: d.args.HeadsQ, HeadsKV: d.args.HeadsKV, HeadDim: headDim, ScoreStride: blocks, MaxBlocks: blocks}
		if s.Meta, err = b.random(metaBytes / 2); err != nil {
			return err
		}
		if s.First, err = upload(b, first); err != nil {
			return err
		}
		if s.Count, err = upload(b, count); err != nil {
			return err
		}
		if s.Scores, err = b.alloc(int64(d.units*blocks) * 4); err != nil {
			return err
		}
		top := cuda.TopKArgs{Scores: s.Scores, Blocks: s.Count, Units: int32(d.units), ScoreStride: blocks, ListStride: k, K: k, Sink: 2, Window: 2}
		if top.List, err = b.alloc(int64(d.units) * k * 4); err != nil {
			return err
		}
		if top.Count, err = b.alloc(int64(d.units) * 4); err != nil {
			return err
		}
		arrived, err := b.zeros(int64(d.units) * 4)
		if err != nil {
			return err
		}
		for _, v := range []struct {
			what  string
			calls []cuda.Operation
		}{{"scores", []cuda.Operation{&s}}, {"top-k", []cuda.Operation{&top}}, {"scores, then top-k", []cuda.Operation{&s, &top}}, {"scores and top-k in one launch", []cuda.Operation{&cuda.SelectArgs{Scores: s, TopK: top, Arrived: arrived}}}} {
			t, err := b.time(50, v.calls...)
			if err != nil {
				return err
			}
			row(v.what+", "+what, t, "%.1f %% of dense, %.2f TB/s of metadata", 100*t.median/dense.median, gbs(metaBytes, t)/1e3)
		}
		var slot []int32
		var dst []int64
		for i := range d.units * blocks {
			slot, dst = append(slot, int32(i)), append(dst, int64(i))
		}
		digest := cuda.DigestArgs{Pool: d.args.Pool, Meta: s.Meta, Count: int64(len(slot)), HeadDim: headDim, BlockTokens: blockTokens}
		if digest.Slot, err = upload(b, slot); err != nil {
			return err
		}
		if digest.Dst, err = upload(b, dst); err != nil {
			return err
		}
		t, err := b.time(20, &digest)
		if err != nil {
			return err
		}
		row(fmt.Sprintf("digest of %d blocks", len(slot)), t, "%.2f TB/s of keys", gbs(d.bytes/2, t)/1e3)
		if err := b.freeAll(); err != nil {
			return err
		}
	}
	return nil
}
