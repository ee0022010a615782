//go:build gpu

package cuda

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"unsafe"
)

func TestGPUSaves(t *testing.T) {
	onGPU(t, func(g *gpu) {
		type saving struct {
			name string
			save func(src Ptr, dst HostMemory, count int, block int64) error
		}
		blocks := func(e engine) func(Ptr, HostMemory, int, int64) error {
			return func(src Ptr, dst HostMemory, count int, block int64) error {
				from := g.addresses(src, contiguous(count, block))
				a := BlocksArgs{Src: from.Ptr(), Dst: dst.Ptr(), Count: int64(count), BlockBytes: block}
				if err := g.Launch(e(a), 0); err != nil {
					return err
				}
				return g.StreamSync(0)
			}
		}
		engines := []saving{
			{"GPU scatter", blocks(gpuScatter)}, {"memcpy per block", blocks(memcpyBlocks)},
		}
		for _, c := range []struct {
			threads, stages int
			chunk           int64
		}{{1, 1, 1 << 20}, {1, 3, 1 << 20}, {3, 2, 1 << 20}, {16, 4, 2 << 20}} {
			saver, err := g.SaverCreate(c.threads, c.chunk, c.stages)
			g.must(err)
			engines = append(engines,
				saving{fmt.Sprintf("FlashD2H, %d threads, %d stages", c.threads, c.stages),
					func(src Ptr, dst HostMemory, count int, block int64) error {
						if block%64 != 0 {
							err := g.Launch(&SaveArgs{Saver: saver, Src: src, Dst: dst.Ptr(), Count: 1,
								BlockBytes: block}, 0)
							if !errors.Is(err, BadArgument) {
								t.Errorf("block of %d bytes: %v", block, err)
							}
							return nil
						}
						return g.Launch(&SaveArgs{Saver: saver, Src: src, Dst: dst.Ptr(), Count: int64(count),
							BlockBytes: block}, 0)
					}})
			defer func() { g.must(g.SaverDestroy(saver)) }()
		}
		for i, c := range transferCases {
			data := make([]byte, int64(c.count)*c.block)
			g.noise(data)
			src := upload(g, data)
			offsets, slabBytes := g.scatterPlan(c.count, c.block)
			slab := g.host(slabBytes, HostPages(i%2))
			to := g.addresses(slab.Ptr(), offsets)
			for _, e := range engines {
				for round := range 3 {
					for j := range slab.Bytes() {
						slab.Bytes()[j] = 0xff
					}
					g.must(e.save(src, to, c.count, c.block))
					if c.block%64 != 0 && len(e.name) > 8 && e.name[:8] == "FlashD2H" {
						continue
					}
					g.checkScattered(fmt.Sprintf("%s, %d x %d, round %d", e.name, c.count, c.block, round),
						slab.Bytes(), data, offsets, c.block)
				}
			}
		}
	})
}

// A save must wait for the event after which its tensor is complete.
func TestGPUSaveWaitsForItsEvent(t *testing.T) {
	onGPU(t, func(g *gpu) {
		const count, block = 256, 16 << 10
		stream, err := g.StreamCreate(false)
		g.must(err)
		event, err := g.EventCreate(false)
		g.must(err)
		saver, err := g.SaverCreate(4, 1<<20, 3)
		g.must(err)
		data := make([]byte, count*block)
		g.noise(data)
		fresh, src := upload(g, data), g.device(count*block)
		slab := g.host(count*block, DriverPages)
		to := g.addresses(slab.Ptr(), contiguous(count, block))
		busy := g.device(1 << 30)
		for i := range 8 { // some milliseconds of work before the tensor is written
			g.must(g.Launch(&MemsetArgs{Dst: busy, Bytes: 1 << 30, Value: int32(i)}, stream))
		}
		g.must(g.Launch(&MemcpyArgs{Dst: src, Src: fresh, Bytes: count * block}, stream))
		g.must(g.EventRecord(event, stream))
		args := &SaveArgs{Saver: saver, Src: src, Dst: to.Ptr(), Count: count, BlockBytes: block,
			After: event}
		g.must(g.Launch(args, 0))
		if !bytes.Equal(slab.Bytes(), data) {
			t.Error("the save ran before its tensor was complete")
		}
		g.must(g.SaverDestroy(saver))
		g.must(g.EventDestroy(event))
		g.must(g.StreamDestroy(stream))
	})
}

// Saves of a few blocks end before some of their threads have run: the next one must not be theirs.
func TestGPUSavesOutrunTheirThreads(t *testing.T) {
	onGPU(t, func(g *gpu) {
		const most, block = 4, 16 << 10
		saver, err := g.SaverCreate(64, 1<<20, 2)
		g.must(err)
		data := make([]byte, 64*most*block)
		g.noise(data)
		src, slab := upload(g, data), g.host(most*block, DriverPages)
		to := g.addresses(slab.Ptr(), contiguous(most, block))
		for round := range 2000 {
			n, from := 1+round%most, round%64*most*block
			g.must(g.Launch(&SaveArgs{Saver: saver, Src: src + Ptr(from), Dst: to.Ptr(), Count: int64(n),
				BlockBytes: block}, 0))
			if !bytes.Equal(slab.Bytes()[:n*block], data[from:from+n*block]) {
				t.Fatalf("save %d is not what it should be", round)
			}
		}
		g.must(g.SaverDestroy(saver))
	})
}

func TestGPUBadArgumentsAreRefused(t *testing.T) {
	onGPU(t, func(g *gpu) {
		for name, err := range map[string]error{
			"block of 8 bytes": g.Launch(&FlashH2DArgs{Count: 1, BlockBytes: 8}, 0),
			"no addresses":     g.Launch(&FlashH2DArgs{Count: 1, BlockBytes: 1024}, 0),
			"group of 16": g.Launch(&DecodeArgs{Batch: 1, HeadsQ: 16, HeadsKV: 1, HeadDim: 128,
				BlockTokens: 32}, 0),
			"head of 96": g.Launch(&DecodeArgs{Batch: 1, HeadsQ: 1, HeadsKV: 1, HeadDim: 96,
				BlockTokens: 32}, 0),
			"block of 8 tokens": g.Launch(&DecodeArgs{Batch: 1, HeadsQ: 1, HeadsKV: 1, HeadDim: 128,
				BlockTokens: 8}, 0),
			"k above the maximum": g.Launch(&TopKArgs{Units: 1, K: TopKMax + 1, ListStride: TopKMax + 1},
				0),
			"foreign host pointer": g.HostFree(HostMemory{base: unsafe.Pointer(g)}),
			"no GPU 99":            g.Init(99),
			"hidden of 4":          g.Launch(&EmbedArgs{Tokens: 1, Hidden: 4}, 0),
			"hidden of 32776":      g.Launch(&RMSNormArgs{Rows: 1, Hidden: 32776}, 0),
			"rows and residual":    g.Launch(&RMSNormArgs{Rows: 1, Hidden: 64, Residual: 16, Row: 16}, 0),
			"rope of 96":           g.Launch(&RopeArgs{Tokens: 1, HeadsQ: 1, HeadsKV: 1, HeadDim: 96}, 0),
			"pool without table": g.Launch(&RopeArgs{Tokens: 1, HeadsQ: 1, HeadsKV: 1, HeadDim: 64,
				QKV: 16, Position: 16, InvFreq: 16, Pool: 16}, 0),
			"FFN of 100":         g.Launch(&SiluMulArgs{Tokens: 1, FFN: 100}, 0),
			"stride below vocab": g.Launch(&ArgmaxArgs{Rows: 1, Vocab: 10, Stride: 9}, 0),
			"table without pool": g.Launch(&PrefillArgs{Q: 16, Out: 16, Table: 16, BlockTokens: 32,
				QTokens: 1, HeadsQ: 1, HeadsKV: 1, HeadDim: 128}, 0),
			"paged by 512 tokens": g.Launch(&PrefillArgs{Q: 16, Out: 16, Pool: 16, Table: 16,
				BlockTokens: 512, QTokens: 1, HeadsQ: 1, HeadsKV: 1, HeadDim: 128}, 0),
			"prefill without data": g.Launch(&PrefillArgs{QTokens: 1, HeadsQ: 1, HeadsKV: 1,
				HeadDim: 128}, 0),
		} {
			want := BadArgument
			if name == "no GPU 99" {
				want = NoDevice
			}
			if !errors.Is(err, want) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
