package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/cuda"
)

const (
	headDim     = 128
	blockTokens = 32
	blockBytes  = 4 * blockTokens * headDim
)

// batch is a decode batch with blocks in random slots. Only shared blocks use a slot twice.
type batch struct {
	args  cuda.DecodeArgs
	units int
	bytes int64 // of K and V that the call reads
	again int64 // of these, bytes that it has read for another request
}

// equal returns requests with equal contexts, in tokens.
func equal(requests, context int) []int { return slices.Repeat([]int{context}, requests) }

// decodeBatch attends to all blocks of the contexts, or to at most `chosen` of each; only attended
// blocks have slots.
func (b *bench) decodeBatch(headsQ, headsKV int, tokens []int, chosen int) *batch {
	return b.sharingBatch(headsQ, headsKV, tokens, chosen, 0)
}

// sharingBatch is decodeBatch with requests whose contexts begin with `shared` common blocks.
func (b *bench) sharingBatch(headsQ, headsKV int, tokens []int, chosen, shared int) *batch {
	has := func(context int) int { return (context + blockTokens - 1) / blockTokens }
	requests, blocks := len(tokens), has(slices.Max(tokens))
	list, units := chosen < blocks, requests*headsKV
	chosen = min(chosen, blocks)
	table, order := make([]int32, units*blocks), make([]int32, units*chosen)
	count, contexts := make([]int32, units), make([]int32, requests)
	used := 0
	for u := range units {
		count[u] = int32(min(chosen, has(tokens[u/headsKV])))
		used += int(count[u])
	}
	slots, given, again := b.order(used), make([]bool, headsKV*blocks), 0
	for u := range units {
		for i := range count[u] {
			order[u*chosen+int(i)] = i
		}
		if list {
			copy(order[u*chosen:], b.order(has(tokens[u/headsKV]))[:count[u]])
		}
		for _, block := range order[u*chosen:][:count[u]] {
			at, first := u*blocks+int(block), u%headsKV*blocks+int(block)
			if int(block) < shared && given[first] {
				table[at] = table[first]
				again++
				continue
			}
			table[at], slots = slots[0], slots[1:]
			if int(block) < shared {
				table[first], given[first] = table[at], true
			}
		}
	}
	for i := range contexts {
		contexts[i] = int32(tokens[i])
	}
	values := requests * headsQ * headDim
	d := &batch{units: units, bytes: int64(used) * blockBytes, again: int64(again) * blockBytes}
	d.args = cuda.DecodeArgs{
		Batch: int32(requests), HeadsQ: int32(headsQ), HeadsKV: int32(headsKV), HeadDim: headDim,
		BlockTokens: blockTokens, TableStride: int32(blocks), ListStride: int32(chosen),
		MaxBlocks: int32(chosen), Scale: float32(1 / math.Sqrt(headDim)),
		Pool: b.random(used * blockBytes / 2), Q: b.random(values), Out: b.random(values),
		Table: upload(b, table), Context: upload(b, contexts),
	}
	if list {
		d.args.List, d.args.Count = upload(b, order), upload(b, count)
	}
	d.args.Workspace = b.workspace(&d.args)
	return d
}

// decode times dense decode and block-sparse decode of 64 blocks per head.
func decode(b *bench) {
	for _, c := range []struct{ requests, headsQ, headsKV, context, chosen int }{
		{1, 32, 32, 32768, 64}, {8, 32, 32, 32768, 64}, {32, 32, 32, 32768, 64},
		{1, 32, 8, 32768, 64}, {8, 32, 8, 32768, 64}, {32, 32, 8, 32768, 64}, {32, 32, 4, 32768,
			64},
		{8, 32, 32, 8192, 256}, {1, 32, 32, 32768, 1024}, {8, 32, 8, 32768, 1024},
	} {
		d := b.decodeBatch(c.headsQ, c.headsKV, equal(c.requests, c.context), c.chosen)
		kind := "block-sparse"
		if d.args.List == 0 {
			kind = "dense"
		}
		what := fmt.Sprintf("%s, batch %d, %d/%d heads, %d tokens a head",
			kind, c.requests, c.headsQ, c.headsKV, c.chosen*blockTokens)
		b.ofCopy(what, b.time(50, &d.args), d.bytes)
		b.free()
	}
}
