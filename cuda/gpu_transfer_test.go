//go:build gpu

package cuda

import (
	"bytes"
	"fmt"
	"testing"
)

// Block sizes and counts of every transfer check: the range's ends, sizes that fill no row, counts
// that fill no warp.
var transferCases = []struct {
	block int64
	count int
}{{1 << 10, 1}, {1 << 10, 1000}, {1040, 37}, {2 << 10, 511}, {4 << 10, 257}, {4112, 33},
	{16 << 10, 1}, {16 << 10, 300}, {64 << 10, 65}, {1 << 20, 9}, {16 << 10, 0}}

// scatterPlan puts count blocks at random places of a slab for twice as many, 64 bytes
// apart from their neighbours' ends.
func (g *gpu) scatterPlan(count int, block int64) (offsets []int64, slabBytes int64) {
	step := (block + 127) / 64 * 64
	places := g.r.Perm(2*count + 1)
	for i := range count {
		offsets = append(offsets, int64(places[i])*step)
	}
	return offsets, int64(len(places)) * step
}

func (g *gpu) addresses(base Ptr, offsets []int64) HostMemory {
	m := g.host(int64(len(offsets)+1)*8, DriverPages)
	for i, o := range offsets {
		Slice[Ptr](m)[i] = base + Ptr(o)
	}
	return m
}

func contiguous(count int, block int64) []int64 {
	o := make([]int64, count)
	for i := range o {
		o[i] = int64(i) * block
	}
	return o
}

func (g *gpu) noise(b []byte) {
	for i := range b {
		b[i] = byte(g.r.Uint32())
	}
}

// checkScattered compares the blocks of a slab with data, and everything between them with the
// poison.
func (g *gpu) checkScattered(what string, slab, data []byte, offsets []int64, block int64) {
	g.t.Helper()
	for i, o := range offsets {
		if !bytes.Equal(slab[o:o+block], data[int64(i)*block:int64(i+1)*block]) {
			g.t.Errorf("%s: block %d differs", what, i)
			return
		}
		for j := range slab[o : o+block] {
			slab[o+int64(j)] = 0xff
		}
	}
	if n := bytes.Count(slab, []byte{0xff}); n != len(slab) {
		g.t.Errorf("%s: %d bytes between the blocks were written", what, len(slab)-n)
	}
}

// engine is one way to copy blocks.
type engine func(BlocksArgs) Operation

func flashH2D(a BlocksArgs) Operation     { return (*FlashH2DArgs)(&a) }
func gpuScatter(a BlocksArgs) Operation   { return (*GPUScatterArgs)(&a) }
func memcpyBlocks(a BlocksArgs) Operation { return (*MemcpyBlocksArgs)(&a) }

func TestGPULoads(t *testing.T) {
	onGPU(t, func(g *gpu) {
		stream, err := g.StreamCreate(false)
		g.must(err)
		engines := []engine{flashH2D, memcpyBlocks}
		for i, c := range transferCases {
			offsets, slabBytes := g.scatterPlan(c.count, c.block)
			slab := g.host(slabBytes, HostPages(i%2))
			g.noise(slab.Bytes())
			src := g.addresses(slab.Ptr(), offsets)
			// Destinations are scattered too, in another order.
			dstOffsets, dstBytes := g.scatterPlan(c.count, c.block)
			dst := g.device(dstBytes)
			addresses := g.addresses(dst, dstOffsets)
			for _, engine := range engines {
				name := Function(engine(BlocksArgs{}))
				g.must(g.Launch(&MemsetArgs{Dst: dst, Bytes: dstBytes, Value: 0xff}, stream))
				blocks := BlocksArgs{
					Src: src.Ptr(), Dst: addresses.Ptr(), Count: int64(c.count), BlockBytes: c.block,
				}
				g.must(g.Launch(engine(blocks), stream))
				g.must(g.StreamSync(stream))
				var want []byte
				for _, o := range offsets {
					want = append(want, slab.Bytes()[o:o+c.block]...)
				}
				g.checkScattered(fmt.Sprintf("%s, %d x %d", name, c.count, c.block),
					download[byte](g, dst, int(dstBytes)), want, dstOffsets, c.block)
			}
		}
		g.must(g.StreamDestroy(stream))
	})
}

// The kernels copy inside device memory too, with any number of CTAs.
func TestGPUCopiesOnTheDevice(t *testing.T) {
	onGPU(t, func(g *gpu) {
		for _, engine := range []engine{flashH2D, gpuScatter} {
			name := Function(engine(BlocksArgs{}))
			for _, ctas := range []int32{0, 1, 3, 132, 5000} {
				for _, c := range transferCases {
					from, fromBytes := g.scatterPlan(c.count, c.block)
					to, toBytes := g.scatterPlan(c.count, c.block)
					data := make([]byte, fromBytes)
					g.noise(data)
					src, dst := upload(g, data), g.device(toBytes)
					g.must(g.Launch(engine(BlocksArgs{
						Src: g.addresses(src, from).Ptr(), Dst: g.addresses(dst, to).Ptr(),
						Count: int64(c.count), BlockBytes: c.block, CTAs: ctas,
					}), 0))
					var want []byte
					for _, o := range from {
						want = append(want, data[o:o+c.block]...)
					}
					g.checkScattered(fmt.Sprintf("%s, %d x %d, %d CTAs", name, c.count, c.block, ctas),
						download[byte](g, dst, int(toBytes)), want, to, c.block)
				}
			}
		}
	})
}

func TestGPULoadsLeaveOutSkippedOwners(t *testing.T) {
	onGPU(t, func(g *gpu) {
		const count, block = 50, 2048
		slab := g.host(count*block, DriverPages)
		g.noise(slab.Bytes())
		src, dst := g.addresses(slab.Ptr(), contiguous(count, block)), g.device(count*block)
		to := g.addresses(dst, contiguous(count, block))
		owner := make([]int32, count)
		for i := range owner {
			owner[i] = int32(i % 5)
		}
		g.must(g.Launch(&FlashH2DArgs{Src: src.Ptr(), Dst: to.Ptr(), Count: count, BlockBytes: block,
			Owner: upload(g, owner), Skip: upload(g, []int32{0, 1, 0, 0, 1})}, 0))
		got := download[byte](g, dst, count*block)
		for i := range count {
			want := slab.Bytes()[i*block : (i+1)*block]
			if owner[i] == 1 || owner[i] == 4 {
				want = bytes.Repeat([]byte{0xff}, block)
			}
			if !bytes.Equal(got[i*block:(i+1)*block], want) {
				t.Fatalf("block %d of owner %d", i, owner[i])
			}
		}
	})
}
