//go:build gpu

package cuda

import (
	"slices"
	"testing"
)

// KVWrite after Rope writes the blocks that Rope by itself does, with slots and with pages.
func TestGPUKVWrite(t *testing.T) {
	onGPU(t, func(g *gpu) {
		const tokens, headsQ, headsKV, dim, block = 77, 8, 2, 128, 32
		qkv, _ := g.normal(tokens*(headsQ+2*headsKV)*dim, 1)
		position, freq := make([]int32, tokens), make([]float32, dim/2)
		for i := range position {
			position[i] = int32(i + 45) // the first block begins with token 32
		}
		const blocks = 3
		pages := []int32{4, 0, 2}
		table := make([]int32, headsKV*blocks)
		for h := range headsKV {
			for b := range blocks {
				table[h*blocks+b] = pages[b]*headsKV + int32(h)
			}
		}
		values := 5 * headsKV * 2 * block * dim
		args := RopeArgs{Position: upload(g, position), InvFreq: upload(g, freq), Table: upload(g, table),
			First: upload(g, []int32{1}), RowStride: headsKV * blocks,
			HeadStride: blocks, Tokens: tokens, HeadsQ: headsQ, HeadsKV: headsKV, HeadDim: dim,
			BlockTokens: block}
		run := func(args RopeArgs, apart bool) []Half {
			args.QKV, args.Pool = upload(g, qkv), g.device(int64(values)*2)
			if first := args; apart {
				first.Pool = 0
				g.must(g.Launch(&first, 0))
				g.must(g.Launch((*KVWriteArgs)(&args), 0))
			} else {
				g.must(g.Launch(&args, 0))
			}
			return download[Half](g, args.Pool, values)
		}
		want := run(args, false)
		if slices.Index(want, 0xffff) < 0 ||
			slices.IndexFunc(want, func(h Half) bool { return h != 0xffff }) < 0 {
			t.Fatal("some of the blocks should be written, and not all")
		}
		if !slices.Equal(run(args, true), want) {
			t.Error("KVWrite writes other blocks than Rope")
		}
		args.Pages, args.Table, args.RowStride, args.HeadStride = 1, upload(g, pages), blocks, 0
		for _, apart := range []bool{false, true} {
			if !slices.Equal(run(args, apart), want) {
				t.Errorf("a table of pages writes other blocks (apart: %v)", apart)
			}
		}
	})
}
