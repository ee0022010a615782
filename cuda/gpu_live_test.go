//go:build gpu

package cuda

import (
	"slices"
	"testing"
)

// The same lists with the slots given with them, and with a table of pages, attend to the same
// blocks: bit for bit.
func TestGPUDecodeBySlotsAndPages(t *testing.T) {
	onGPU(t, func(g *gpu) {
		a := g.batch(4, 2, 128, 32, 777, 5, 64)
		g.choose(a, 7, false)
		run := func(args DecodeArgs) []Half {
			bytes, err := g.Workspace(&args)
			g.must(err)
			args.Workspace, args.Out = g.zeroed(bytes), g.device(int64(len(a.Q))*2)
			g.must(g.Launch(&args, 0))
			return download[Half](g, args.Out, len(a.Q))
		}
		want := run(a.args)

		slots := make([]int32, len(a.List))
		for unit := range a.Units() {
			for i := range a.Count[unit] {
				at := unit*a.ListStride + int(i)
				slots[at] = a.Table[unit*a.TableStride+int(a.List[at])]
			}
		}
		given := a.args
		given.Table, given.Slot = 0, upload(g, slots)
		if !slices.Equal(run(given), want) {
			t.Error("decode differs when the slots are given with the list")
		}

		// The same blocks laid out by pages: block b of head h in slot page[b] * Hk + h.
		size := 2 * a.BlockTokens * a.Dim
		pool := download[Half](g, a.args.Pool, len(a.Pool))
		pages := g.r.Perm(a.Batch*a.TableStride + 2)
		paged, table := make([]Half, len(pages)*a.HeadsKV*size), make([]int32, a.Batch*a.TableStride)
		for i := range table {
			table[i] = int32(pages[i])
			request, block := i/a.TableStride, i%a.TableStride
			for h := range a.HeadsKV {
				from := int(a.Table[(request*a.HeadsKV+h)*a.TableStride+block])
				copy(paged[(pages[i]*a.HeadsKV+h)*size:][:size], pool[from*size:])
			}
		}
		for _, list := range []bool{true, false} {
			args := a.args
			if !list {
				args.List, args.Count, args.MaxBlocks = 0, 0, int32(a.TableStride)
				want = run(args)
			}
			args.Pages, args.Table, args.Pool = 1, upload(g, table), upload(g, paged)
			if !slices.Equal(run(args), want) {
				t.Errorf("decode differs with a table of pages (list: %v)", list)
			}
		}
	})
}

func TestGPUPSABySlots(t *testing.T) {
	onGPU(t, func(g *gpu) {
		a := g.batch(4, 2, 128, 32, 777, 300)
		g.choose(a, 24, false)
		_, args := g.psa(a, 8, 0.9)
		bytes, err := g.Workspace(args)
		g.must(err)
		args.State, args.Steps = g.zeroed(bytes), 3
		g.must(g.Launch(args, 0))
		want := download[Half](g, args.Out, len(a.Q))
		slots := make([]int32, len(a.List))
		for unit := range a.Units() {
			for i := range a.Count[unit] {
				at := unit*a.ListStride + int(i)
				slots[at] = a.Table[unit*a.TableStride+int(a.List[at])]
			}
		}
		args.Table, args.Slot = 0, upload(g, slots)
		args.State, args.Out = g.zeroed(bytes), g.device(int64(len(a.Q))*2)
		g.must(g.Launch(args, 0))
		if !slices.Equal(download[Half](g, args.Out, len(a.Q)), want) {
			t.Error("PSA differs when the slots are given with the order")
		}
	})
}

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
