package main

import (
	"fmt"
	"math"

	"sparseserve/cuda"
)

const (
	headDim     = 128
	blockTokens = 32
	blockBytes  = 4 * blockTokens * headDim
)

// batch is a decode batch whose blocks lie in random slots, each slot used once.
type batch struct {
	args  cuda.DecodeArgs
	units int
	bytes int64 // of K and V that the call reads
}

// sparse chooses `chosen` of the 1024 blocks of a 32k context for each unit; only those have slots.
func (b *bench) sparse(requests, headsQ, headsKV, chosen int) (*batch, error) {
	const context = 32768
	return b.decodeBatch(requests, headsQ, headsKV, context, chosen)
}

func (b *bench) decodeBatch(requests, headsQ, headsKV, context, chosen int) (*batch, error) {
	blocks := context / blockTokens
	list := chosen < blocks
	units := requests * headsKV
	d := &batch{units: units, bytes: int64(units*chosen) * blockBytes}
	table, order, count, contexts := make([]int32, units*blocks), make([]int32, units*chosen), make([]int32, units), make([]int32, requests)
	slots := b.rand().Perm(units * chosen)
	for u := range units {
		count[u] = int32(chosen)
		picked := b.rand().Perm(blocks)[:chosen]
		if !list {
			for i := range picked {
				picked[i] = i
			}
		}
		for i, block := range picked {
			order[u*chosen+i] = int32(block)
			table[u*blocks+block] = int32(slots[u*chosen+i])
		}
	}
	for i := range contexts {
		contexts[i] = int32(context)
	}
	a := &d.args
	*a = cuda.DecodeArgs{Batch: int32(requests), HeadsQ: int32(headsQ), HeadsKV: int32(headsKV), HeadDim: headDim, BlockTokens: blockTokens, TableStride: int32(blocks),
		ListStride: int32(chosen), MaxBlocks: int32(chosen), Scale: float32(1 / math.Sqrt(headDim))}
	var err error
	set := func(p *cuda.Ptr, get func() (cuda.Ptr, error)) {
		if err == nil {
			*p, err = get()
		}
	}
	set(&a.Pool, func() (cuda.Ptr, error) { return b.random(int64(units*chosen) * blockBytes / 2) })
	set(&a.Q, func() (cuda.Ptr, error) { return b.random(int64(requests * headsQ * headDim)) })
	set(&a.Out, func() (cuda.Ptr, error) { return b.alloc(int64(requests * headsQ * headDim * 2)) })
	set(&a.Table, func() (cuda.Ptr, error) { return upload(b, table) })
	set(&a.Context, func() (cuda.Ptr, error) { return upload(b, contexts) })
	if list {
		set(&a.List, func() (cuda.Ptr, error) { return upload(b, order) })
		set(&a.Count, func() (cuda.Ptr, error) { return upload(b, count) })
	}
	if err != nil {
		return nil, err
	}
	bytes, err := b.DecodeWorkspace(a)
	if err != nil {
		return nil, err
	}
	a.Workspace, err = b.zeros(bytes)
	return d, err
}

func decode(b *bench) error {
	for _, c := range []struct{ requests, headsQ, headsKV, context, chosen int }{
		{1, 32, 32, 32768, 64}, {8, 32, 32, 32768, 64}, {32, 32, 32, 32768, 64}, {1, 32, 8, 32768, 64}, {8, 32, 8, 32768, 64}, {32, 32, 8, 32768, 64}, {32, 32, 4, 32768, 64},
		{8, 32, 32, 8192, 256}, {1, 32, 32, 32768, 1024}, {8, 32, 8, 32768, 1024},
	} {
		d, err := b.decodeBatch(c.requests, c.headsQ, c.headsKV, c.context, c.chosen)
		if err != nil {
			return err
		}
		t, err := b.time(50, &d.args)
		if err != nil {
			return err
		}
		kind := "block-sparse"
		if d.args.List == 0 {
			kind = "dense"
		}
		row(fmt.Sprintf("%s, batch %d, %d/%d heads, %d tokens a head", kind, c.requests, c.headsQ, c.headsKV, c.chosen*blockTokens), t, "%.2f TB/s, %.3f of the device copy", gbs(d.bytes, t)/1e3, gbs(d.bytes, t)/b.copy)
		if err := b.freeAll(); err != nil {
			return err
		}
	}
	return nil
}
