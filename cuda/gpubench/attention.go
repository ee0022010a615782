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

// psa compares PSA with the top-k kernel over the same blocks: epsilon 1 attends to all of them.
func psa(b *bench) error {
	for _, requests := range []int{1, 8, 32} {
		d, err := b.sparse(requests, 32, 32, 64)
		if err != nil {
			return err
		}
		top, err := b.time(50, &d.args)
		if err != nil {
			return err
		}
		row(fmt.Sprintf("top-k kernel, batch %d, 64 blocks a head", requests), top, "%.2f TB/s", gbs(d.bytes, top)/1e3)
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

// psaPipeline compares loads and compute in two streams with one after the other: one block in 16 of a batch waits in host memory.
func psaPipeline(b *bench) error {
	const requests, chosen, micro, every = 8, 64, 16, 16
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
	for _, c := range []struct {
		what  string
		calls []cuda.Operation
	}{{"loads alone", []cuda.Operation{load}}, {"PSA alone", []cuda.Operation{args}}, {"loads, then PSA", []cuda.Operation{load, args}}, {"pipelined", []cuda.Operation{p}}} {
		t, err := b.timeBy(cuda.WallClock, 30, c.calls...)
		if err != nil {
			return err
		}
		row(fmt.Sprintf("PSA, batch %d, %d of %d blocks loaded: %s", requests, len(src), d.units*chosen, c.what), t, "")
	}
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
	bytes, err := b.PSAState(p)
	if err != nil {
		return nil, err
	}
	p.State, err = b.zeros(bytes)
	return p, err
}

// selection times scores and top-k of a 32k context against the dense attention that they replace.
func selection(b *bench) error {
	const blocks, k = 1024, 64
	for _, c := range []struct{ requests, headsQ, headsKV int }{{1, 32, 32}, {8, 32, 32}, {8, 32, 8}} {
		d, err := b.decodeBatch(c.requests, c.headsQ, c.headsKV, blocks*blockTokens, blocks)
		if err != nil {
			return err
		}
		dense, err := b.time(20, &d.args)
		if err != nil {
			return err
		}
		what := fmt.Sprintf("batch %d, %d/%d heads", c.requests, c.headsQ, c.headsKV)
		row("dense decode of 32k, "+what, dense, "%.2f TB/s", gbs(d.bytes, dense)/1e3)
		first, count := make([]int64, d.units), make([]int32, d.units)
		for u := range first {
			first[u], count[u] = int64(u*blocks), blocks
		}
		metaBytes := int64(d.units*blocks) * 4 * headDim
		s := cuda.ScoresArgs{Q: d.args.Q, Batch: d.args.Batch, HeadsQ: d.args.HeadsQ, HeadsKV: d.args.HeadsKV, HeadDim: headDim, ScoreStride: blocks, MaxBlocks: blocks}
		if s.Meta, err = b.random(metaBytes / 2); err != nil {
			return err
		}
		if s.First, err = upload(b, first); err != nil {
			return err
		}
		if s.Count, err = upload(b, count); err != nil {
			return err
		}
		if s.Scores, err = b.alloc(int64(d.units*blocks) * 4); err != nil {
			return err
		}
		top := cuda.TopKArgs{Scores: s.Scores, Blocks: s.Count, Units: int32(d.units), ScoreStride: blocks, ListStride: k, K: k, Sink: 2, Window: 2}
		if top.List, err = b.alloc(int64(d.units) * k * 4); err != nil {
			return err
		}
		if top.Count, err = b.alloc(int64(d.units) * 4); err != nil {
			return err
		}
		arrived, err := b.zeros(int64(d.units) * 4)
		if err != nil {
			return err
		}
		for _, v := range []struct {
			what  string
			calls []cuda.Operation
		}{{"scores", []cuda.Operation{&s}}, {"top-k", []cuda.Operation{&top}}, {"scores, then top-k", []cuda.Operation{&s, &top}}, {"scores and top-k in one launch", []cuda.Operation{&cuda.SelectArgs{Scores: s, TopK: top, Arrived: arrived}}}} {
			t, err := b.time(50, v.calls...)
			if err != nil {
				return err
			}
			row(v.what+", "+what, t, "%.1f %% of dense, %.2f TB/s of metadata", 100*t.median/dense.median, gbs(metaBytes, t)/1e3)
		}
		var slot []int32
		var dst []int64
		for i := range d.units * blocks {
			slot, dst = append(slot, int32(i)), append(dst, int64(i))
		}
		digest := cuda.DigestArgs{Pool: d.args.Pool, Meta: s.Meta, Count: int64(len(slot)), HeadDim: headDim, BlockTokens: blockTokens}
		if digest.Slot, err = upload(b, slot); err != nil {
			return err
		}
		if digest.Dst, err = upload(b, dst); err != nil {
			return err
		}
		t, err := b.time(20, &digest)
		if err != nil {
			return err
		}
		row(fmt.Sprintf("digest of %d blocks", len(slot)), t, "%.2f TB/s of keys", gbs(d.bytes/2, t)/1e3)
		if err := b.freeAll(); err != nil {
			return err
		}
	}
	return nil
}

// prefillArgs lays q, k and v out as [token][head][d].
func (b *bench) prefillArgs(tokens, prefix, headsQ, headsKV int) (*cuda.PrefillArgs, error) {
	rowQ, rowKV := int64(headsQ*headDim), int64(headsKV*headDim)
	a := &cuda.PrefillArgs{QTokenStride: rowQ, QHeadStride: headDim, KTokenStride: rowKV, KHeadStride: headDim, VTokenStride: rowKV, VHeadStride: headDim, OutTokenStride: rowQ,
		OutHeadStride: headDim, QTokens: int32(tokens), Prefix: int32(prefix), HeadsQ: int32(headsQ), HeadsKV: int32(headsKV), HeadDim: headDim, Scale: float32(1 / math.Sqrt(headDim))}
	for p, rows := range map[*cuda.Ptr]int64{&a.Q: int64(tokens) * rowQ, &a.K: int64(tokens+prefix) * rowKV, &a.V: int64(tokens+prefix) * rowKV, &a.Out: int64(tokens) * rowQ} {
		var err error
		if *p, err = b.random(rows); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func prefill(b *bench) error {
	for _, c := range []struct{ tokens, prefix, headsQ, headsKV int }{{2048, 0, 32, 32}, {8192, 0, 32, 32}, {32768, 0, 32, 32}, {32768, 0, 32, 8}, {512, 8192, 32, 32}, {2048, 30720, 32, 32}} {
		a, err := b.prefillArgs(c.tokens, c.prefix, c.headsQ, c.headsKV)
		if err != nil {
			return err
		}
		t, err := b.time(8, a)
		if err != nil {
			return err
		}
		// 2 products of 2 D operations for each (query, visible key); query i sees prefix + i + 1 keys.
		pairs := float64(c.tokens)*float64(c.prefix) + float64(c.tokens)*float64(c.tokens+1)/2
		row(fmt.Sprintf("prefill of %d tokens, prefix %d, %d/%d heads", c.tokens, c.prefix, c.headsQ, c.headsKV), t, "%.0f TFLOP/s", 4*headDim*pairs*float64(c.headsQ)/t.median/1e9)
		if err := b.freeAll(); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) linear(tokens, in, out int) (*cuda.LinearArgs, error) {
	a := &cuda.LinearArgs{Tokens: int32(tokens), In: int32(in), Out: int32(out)}
	for p, count := range map[*cuda.Ptr]int64{&a.X: int64(tokens) * int64(in), &a.W: int64(in) * int64(out), &a.Y: int64(tokens) * int64(out)} {
		var err error
		if *p, err = b.random(count); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// linears times the four linears of an LWM-7B layer: QKV, output, gate and up, down.
func linears(b *bench) error {
	for _, tokens := range []int{1, 128, 2048, 8192} {
		var calls []cuda.Operation
		flops := 0.0
		for _, shape := range [][2]int{{4096, 3 * 4096}, {4096, 4096}, {4096, 2 * 11008}, {11008, 4096}} {
			a, err := b.linear(tokens, shape[0], shape[1])
			if err != nil {
				return err
			}
			calls, flops = append(calls, a), flops+2*float64(tokens)*float64(shape[0])*float64(shape[1])
		}
		t, err := b.time(30, calls...)
		if err != nil {
			return err
		}
		row(fmt.Sprintf("linears of an LWM-7B layer, %d tokens", tokens), t, "%.0f TFLOP/s", flops/t.median/1e9)
		if err := b.freeAll(); err != nil {
			return err
		}
	}
	return nil
}
