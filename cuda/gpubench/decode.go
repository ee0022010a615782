package main

import (
	"fmt"
	"math"
	"slices"

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
	return b.decodeBatch(headsQ, headsKV, equal(requests, context), chosen)
}

func equal(requests, context int) []int { return slices.Repeat([]int{context}, requests) }

// decodeBatch attends to all blocks of the contexts, given in tokens; or to `chosen` of each where that is less.
func (b *bench) decodeBatch(headsQ, headsKV int, tokens []int, chosen int) (*batch, error) {
	requests, blocks := len(tokens), (slices.Max(tokens)+blockTokens-1)/blockTokens
	list, units := chosen < blocks, requests*headsKV
	chosen = min(chosen, blocks)
	table, order, count, contexts := make([]int32, units*blocks), make([]int32, units*chosen), make([]int32, units), make([]int32, requests)
	used := 0
	for u := range units {
		has := (tokens[u/headsKV] + blockTokens - 1) / blockTokens
		count[u] = int32(min(chosen, has))
		used += int(count[u])
	}
	d := &batch{units: units, bytes: int64(used) * blockBytes}
	slots := b.rand().Perm(used)
	for u := range units {
		n := int(count[u])
		picked := b.rand().Perm((tokens[u/headsKV] + blockTokens - 1) / blockTokens)[:n]
		if !list {
			for i := range picked {
				picked[i] = i
			}
		}
		for i, block := range picked {
			order[u*chosen+i] = int32(block)
			table[u*blocks+block] = int32(slots[i])
		}
		slots = slots[n:]
	}
	for i := range contexts {
		contexts[i] = int32(tokens[i])
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
	set(&a.Pool, func() (cuda.Ptr, error) { return b.random(d.bytes / 2) })
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
	bytes, err := b.Workspace(a)
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
		d, err := b.decodeBatch(c.headsQ, c.headsKV, equal(c.requests, c.context), c.chosen)
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

// balance compares dense decode of equal contexts with that of contexts like 1:2:4:8 (a batch of two: 1:8) of the same sum.
func balance(b *bench) error {
	const mean = 8192 // tokens
	for _, headsKV := range []int{32, 8} {
		for _, requests := range []int{2, 3, 4, 5, 8, 12, 16, 17} {
			shares := []int{1, 2, 4, 8}
			if requests == 2 {
				shares = []int{1, 8}
			}
			even, err := b.dense(headsKV, equal(requests, mean))
			if err != nil {
				return err
			}
			uneven, err := b.dense(headsKV, unequal(requests, mean, shares))
			if err != nil {
				return err
			}
			what := fmt.Sprintf("dense, batch %d, 32/%d heads, %d tokens", requests, headsKV, requests*mean)
			row(what+", equal contexts", even.timing, "%.2f TB/s, %.3f of the device copy", gbs(even.bytes, even.timing)/1e3, gbs(even.bytes, even.timing)/b.copy)
			row(what+", unequal", uneven.timing, "%.3f of the time of equal ones", uneven.median/even.median)
		}
	}
	return nil
}

// unequal cuts the tokens of so many requests in proportion to the shares, in turn; the last one takes what is left.
func unequal(requests, mean int, shares []int) []int {
	sum := 0
	for i := range requests {
		sum += shares[i%len(shares)]
	}
	contexts, left := make([]int, requests), requests*mean
	for i := range contexts {
		contexts[i] = requests * mean * shares[i%len(shares)] / sum
		if i == requests-1 {
			contexts[i] = left
		}
		left -= contexts[i]
	}
	return contexts
}

type timedBatch struct {
	timing
	bytes int64
}

func (b *bench) dense(headsKV int, contexts []int) (timedBatch, error) {
	d, err := b.decodeBatch(32, headsKV, contexts, math.MaxInt32)
	if err != nil {
		return timedBatch{}, err
	}
	t, err := b.time(50, &d.args)
	if err != nil {
		return timedBatch{}, err
	}
	return timedBatch{t, d.bytes}, b.freeAll()
}
