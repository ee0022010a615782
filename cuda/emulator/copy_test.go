package emulator

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
)

// The values are the result of fill.cu's arithmetic, compiled by a C compiler.
func TestFillIsTheKernels(t *testing.T) {
	g := newFixture(t, Config{})
	for _, c := range []struct {
		seed  uint64
		scale float32
		want  []cuda.Half
	}{
		{0, 1, []cuda.Half{0xb65d, 0x34e1, 0xade3, 0xb438, 0xbb03, 0xb2e6, 0x31a8, 0x379a, 0xbb21, 0x340b,
			0xaf6d, 0x3bad}},
		{7, 0.02, []cuda.Half{0xa45c, 0x9c5c, 0x220d, 0x95b4, 0xa123, 0xa404, 0x20e1, 0x242e, 0x1b53,
			0xa0da, 0x971f, 0x18b0}},
		{1<<64 - 1, 3.3, []cuda.Half{0x424d, 0xc03c, 0x3f71, 0x3bb6, 0x4010, 0x4265, 0xbe78, 0xbe71,
			0x3fa6, 0xadf9, 0x3ce7, 0x3da6}},
	} {
		p := g.device(28)
		g.must(g.Launch(&cuda.FillArgs{Dst: p, Count: 12, Seed: c.seed, Scale: c.scale}, 0))
		got := download[cuda.Half](g, p, 14)
		if !slices.Equal(got[:12], c.want) {
			t.Errorf("seed %d: %#04x", c.seed, got)
		}
		if got[12] != 0x7e7e {
			t.Errorf("seed %d: written past the end", c.seed)
		}
	}
}

func TestBlocksAreCopied(t *testing.T) {
	g := newFixture(t, Config{})
	const count, block = 9, 48
	data := make([]byte, count*block)
	for i := range data {
		data[i] = byte(g.r.Uint32())
	}
	slab, to := pinned(g, data), g.r.Perm(2 * count)[:count]
	for name, engine := range map[string]func(cuda.BlocksArgs) cuda.Operation{
		"FlashH2D":    func(a cuda.BlocksArgs) cuda.Operation { return (*cuda.FlashH2DArgs)(&a) },
		"GPU scatter": func(a cuda.BlocksArgs) cuda.Operation { return (*cuda.GPUScatterArgs)(&a) },
		"memcpy per block": func(a cuda.BlocksArgs) cuda.Operation {
			return (*cuda.MemcpyBlocksArgs)(&a)
		},
	} {
		dst, s := g.device(2*count*block), g.stream()
		var src, places []cuda.Ptr
		for i, place := range to {
			src, places = append(src, slab.Ptr()+cuda.Ptr(i*block)),
				append(places, dst+cuda.Ptr(place*block))
		}
		args := cuda.BlocksArgs{Src: pinned(g, src).Ptr(), Dst: pinned(g, places).Ptr(), Count: count,
			BlockBytes: block}
		g.must(g.Launch(engine(args), s))
		want := bytes.Repeat([]byte{poison}, 2*count*block)
		for i, place := range to {
			copy(want[place*block:], data[i*block:(i+1)*block])
		}
		if !bytes.Equal(download[byte](g, dst, len(want)), want) {
			t.Errorf("%s: blocks differ", name)
		}
		args.Count++
		faults(t, name+", one address too many", g.Launch(engine(args), s), "Src", "past the end")
	}
}

func TestSkippedOwnersAreLeftOut(t *testing.T) {
	g := newFixture(t, Config{})
	dst := g.device(5 * 16)
	var src, to []cuda.Ptr
	for i := range 5 {
		src, to = append(src, upload(g, bytes.Repeat([]byte{byte(i)}, 16))),
			append(to, dst+cuda.Ptr(16*i))
	}
	src[3] = 4096 // of an owner that is skipped: never read
	owner, skip := upload(g, []int32{0, 1, 2, 1, 0}), upload(g, []int32{0, 1, 0})
	g.must(g.Launch(&cuda.FlashH2DArgs{Src: upload(g, src), Dst: upload(g, to), Count: 5,
		BlockBytes: 16, Owner: owner, Skip: skip}, 0))
	got := download[byte](g, dst, 80)
	for i, want := range []byte{0, poison, 2, poison, 4} {
		if got[16*i] != want || got[16*i+15] != want {
			t.Errorf("block %d holds %d", i, got[16*i])
		}
	}
	skip = upload(g, []int32{0, 0, 0})
	faults(t, "not skipped",
		g.Launch(&cuda.FlashH2DArgs{Src: upload(g, src), Dst: upload(g, to), Count: 5, BlockBytes: 16,
			Owner: owner, Skip: skip}, 0), "Src block", "no allocation")
}

func TestSavesReachTheirBlocks(t *testing.T) {
	g := newFixture(t, Config{})
	saver, err := g.SaverCreate(2, 4096, 2)
	g.must(err)
	const count, block = 7, 128
	data := make([]byte, count*block)
	for i := range data {
		data[i] = byte(g.r.Uint32())
	}
	src, slab := upload(g, data), g.host(2*count*block)
	var to []cuda.Ptr
	want := bytes.Repeat([]byte{poison}, 2*count*block)
	for i, place := range g.r.Perm(2 * count)[:count] {
		to = append(to, slab.Ptr()+cuda.Ptr(place*block))
		copy(want[place*block:], data[i*block:(i+1)*block])
	}
	args := &cuda.SaveArgs{Saver: saver, Src: src, Dst: pinned(g, to).Ptr(), Count: count,
		BlockBytes: block}
	g.must(g.Launch(args, 0))
	if !bytes.Equal(slab.Bytes(), want) {
		t.Error("blocks differ")
	}
	args.Count++
	faults(t, "a tensor too short",
		g.Launch(&cuda.SaveArgs{Saver: saver, Src: src + 64, Dst: args.Dst, Count: count,
			BlockBytes: block}, 0), "Src", "64 bytes past the end")
	g.must(g.SaverDestroy(saver))
	if err := g.Launch(args, 0); !errors.Is(err, cuda.BadArgument) {
		t.Errorf("a saver destroyed: %v", err)
	}
}
