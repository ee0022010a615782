package main

import (
	"fmt"

	"sparseserve/cuda"
)

// digests times the digests of the blocks that a chunk of a prompt fills in a layer, and of those that decodes fill, against the reading of their
// keys: alone, and between two other kernels, less these, as in a layer.
func digests(b *bench) error {
	pair, err := b.time(50, &cuda.EmptyArgs{}, &cuda.EmptyArgs{})
	if err != nil {
		return err
	}
	for _, c := range []struct {
		what                   string
		headsKV, blocks, block int
	}{
		{"1 decode", 32, 1, 32}, {"8 decodes", 32, 8, 32}, {"512 tokens", 32, 16, 32}, {"2,048 tokens", 32, 64, 32}, {"8,192 tokens", 32, 256, 32}, {"2,048 tokens", 8, 64, 32},
		{"2,048 tokens", 32, 256, 8}, {"2,048 tokens", 32, 128, 16}, {"2,048 tokens", 32, 32, 64}, {"2,048 tokens", 32, 16, 128},
	} {
		n := c.headsKV * c.blocks
		slot, dst := b.order(n), make([]int64, n)
		for i, at := range b.order(n) {
			dst[i] = int64(at)
		}
		a := &cuda.DigestArgs{Count: int64(n), HeadDim: headDim, BlockTokens: int32(c.block)}
		if a.Pool, err = b.random(int64(n) * 2 * int64(c.block) * headDim); err != nil {
			return err
		}
		if a.Slot, err = upload(b, slot); err != nil {
			return err
		}
		if a.Dst, err = upload(b, dst); err != nil {
			return err
		}
		if a.Meta, err = b.alloc(int64(n) * 4 * headDim); err != nil {
			return err
		}
		bytes := int64(n) * 2 * headDim * int64(c.block+2) // keys read, digests written
		what := fmt.Sprintf("%s, %d KV heads, blocks of %d", c.what, c.headsKV, c.block)
		alone, err := b.time(50, a)
		if err != nil {
			return err
		}
		row("digests of "+what, alone, "%.2f TB/s", gbs(bytes, alone)/1e3)
		between, err := b.time(50, &cuda.EmptyArgs{}, a, &cuda.EmptyArgs{})
		if err != nil {
			return err
		}
		more := timing{between.median - pair.median, between.low - pair.median, between.high - pair.median}
		row("the same between two other kernels, less these", more, "at the device copy's rate %.1f us", float64(bytes)/b.copy/1e3)
		if err := b.freeAll(); err != nil {
			return err
		}
	}
	return nil
}
