package main

import (
	"fmt"
	"slices"

	"sparseserve/cuda"
)

// psa compares PSA with the top-k kernel over the same blocks: epsilon 1 attends to all of them.
func psa(b *bench) error {
	for _, c := range []struct{ requests, headsQ, headsKV int }{{1, 32, 32}, {8, 32, 32}, {32, 32, 32}, {1, 32, 8}} {
		d, err := b.sparse(c.requests, c.headsQ, c.headsKV, 64)
		if err != nil {
			return err
		}
		top, err := b.time(50, &d.args)
		if err != nil {
			return err
		}
		row(fmt.Sprintf("top-k kernel, batch %d, %d/%d heads, 64 blocks a head", c.requests, c.headsQ, c.headsKV), top, "%.2f TB/s", gbs(d.bytes, top)/1e3)
		for _, micro := range []int{4, 8, 16} {
			args, err := b.psaArgs(d, micro)
			if err != nil {
				return err
			}
			t, err := b.time(50, args)
			if err != nil {
				return err
			}
			row(fmt.Sprintf("PSA, microbatches of %d, one launch", micro), t, "%.2fx the top-k kernel", t.median/top.median)
			half := *args
			half.Epsilon = 0.45 // blocks of random data weigh about the same: passed once half of them are done
			if t, err = b.time(50, &half); err != nil {
				return err
			}
			row(fmt.Sprintf("PSA, microbatches of %d, one launch, half of the blocks", micro), t, "%.2fx the top-k kernel", t.median/top.median)
			var steps []cuda.Operation
			for i := range 64 / micro {
				step := *args
				step.First, step.Steps = int32(i), 1
				steps = append(steps, &step)
			}
			if t, err = b.time(50, steps...); err != nil {
				return err
			}
			row(fmt.Sprintf("PSA, microbatches of %d, a launch each", micro), t, "%.2fx the top-k kernel", t.median/top.median)
		}
		if err := b.freeAll(); err != nil {
			return err
		}
	}
	return nil
}

// psaPipeline compares loads and compute in two streams with one after the other: one block in so many of a batch waits in host memory.
func psaPipeline(b *bench) error {
	for _, every := range []int{16, 64} {
		if err := psaPipelineOf(b, every); err != nil {
			return err
		}
		if err := b.freeAll(); err != nil {
			return err
		}
	}
	return nil
}

func psaPipelineOf(b *bench, every int) error {
	const requests, chosen, micro = 8, 64, 16
	d, err := b.sparse(requests, 32, 32, chosen)
	if err != nil {
		return err
	}
	args, err := b.psaArgs(d, micro)
	if err != nil {
		return err
	}
	flag, err := b.pinned(4, cuda.DriverPages)
	if err != nil {
		return err
	}
	args.Flag = flag.Ptr()
	slab, err := b.pinned(1<<30, cuda.HugePages)
	if err != nil {
		return err
	}
	const steps = chosen / micro
	var first []int64
	var src, dst []cuda.Ptr
	var owner []int32
	places := b.rand().Perm(1 << 30 / blockBytes)
	for range steps {
		first = append(first, int64(len(src)))
		for range d.units * micro / every {
			src = append(src, slab.Ptr()+cuda.Ptr(places[len(src)]*blockBytes))
			dst = append(dst, args.Pool+cuda.Ptr(int64(b.rand().IntN(d.units*chosen))*blockBytes))
			owner = append(owner, int32(len(src)%d.units))
		}
	}
	first = append(first, int64(len(src)))
	host, err := b.pinned(8*int64(len(first)), cuda.DriverPages)
	if err != nil {
		return err
	}
	copy(cuda.Slice[int64](host), first)
	p := &cuda.PSAPipelineArgs{PSA: args, LoadFirst: host.Ptr(), BlockBytes: blockBytes, Microbatches: steps, Depth: 2}
	if p.Src, err = upload(b, src); err != nil {
		return err
	}
	if p.Dst, err = upload(b, dst); err != nil {
		return err
	}
	if p.Owner, err = upload(b, owner); err != nil {
		return err
	}
	load := (*cuda.FlashH2DArgs)(&cuda.BlocksArgs{Src: p.Src, Dst: p.Dst, Count: int64(len(src)), BlockBytes: blockBytes})
	// Blocks of random data weigh about the same, so a threshold of 0.45 is passed once half of them are done.
	half := *args
	half.Epsilon = 0.45
	early := *p
	early.PSA = &half
	for _, c := range []struct {
		what  string
		calls []cuda.Operation
	}{
		{"loads alone", []cuda.Operation{load}},
		{"PSA alone", []cuda.Operation{args}},
		{"loads, then PSA", []cuda.Operation{load, args}},
		{"pipelined", []cuda.Operation{p}},
		{"loads, then PSA of half", []cuda.Operation{load, &half}},
		{"pipelined PSA of half", []cuda.Operation{&early}},
	} {
		t, err := b.timeBy(cuda.WallClock, 30, c.calls...)
		if err != nil {
			return err
		}
		row(fmt.Sprintf("PSA, batch %d, %d of %d blocks loaded: %s", requests, len(src), d.units*chosen, c.what), t, "")
	}
	used := make([]int32, d.units)
	if err := cuda.Download(b.Session, used, half.Used); err != nil {
		return err
	}
	fmt.Printf("  the last attended to %d to %d of %d blocks a unit\n", slices.Min(used), slices.Max(used), chosen)
	return nil
}

func (b *bench) psaArgs(d *batch, micro int) (*cuda.PSAArgs, error) {
	a := d.args
	p := &cuda.PSAArgs{Q: a.Q, Pool: a.Pool, Table: a.Table, Context: a.Context, Order: a.List, Count: a.Count, Out: a.Out, Batch: a.Batch, HeadsQ: a.HeadsQ, HeadsKV: a.HeadsKV,
		HeadDim: a.HeadDim, BlockTokens: a.BlockTokens, TableStride: a.TableStride, OrderStride: a.ListStride, Micro: int32(micro), Steps: (a.MaxBlocks + int32(micro) - 1) / int32(micro), Scale: a.Scale, Epsilon: 1}
	var err error
	if p.Used, err = b.alloc(int64(d.units) * 4); err != nil {
		return nil, err
	}
	if p.Done, err = b.alloc(int64(d.units) * 4); err != nil {
		return nil, err
	}
	bytes, err := b.Workspace(p)
	if err != nil {
		return nil, err
	}
	p.State, err = b.zeros(bytes)
	return p, err
}
