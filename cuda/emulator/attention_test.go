package emulator

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/reference"
)

// attention is one random decode batch, on the machine and for the reference.
type attention struct {
	naiveDecode
	args cuda.DecodeArgs
}

// batch builds caches of the given context lengths: blocks in random slots, NaN in unused slots and
// past the context's end.
func (g *fixture) batch(group, kvHeads, dim, blockTokens int, contexts ...int) *attention {
	a := &attention{}
	a.Shape = reference.Shape{Batch: len(contexts), HeadsQ: group * kvHeads,
		HeadsKV: kvHeads, Dim: dim}
	a.BlockTokens, a.TableStride = blockTokens, 1
	for _, n := range contexts {
		a.Context = append(a.Context, int32(n))
		a.TableStride = max(a.TableStride, (n+blockTokens-1)/blockTokens)
	}
	a.Scale = float64(float32(1 / math.Sqrt(float64(dim))))
	size := 2 * blockTokens * dim
	a.Table = g.unread(a.Units() * a.TableStride)
	slots := g.r.Perm(len(a.Table) + 3)
	pool := slices.Repeat([]cuda.Half{0x7e00}, len(slots)*size)
	for unit := range a.Units() {
		for block := range a.Blocks(unit / kvHeads) {
			slot := slots[unit*a.TableStride+block]
			a.Table[unit*a.TableStride+block] = int32(slot)
			tokens := min(blockTokens, contexts[unit/kvHeads]-block*blockTokens)
			for kv := range 2 {
				values, _ := g.normal(tokens*dim, 1)
				copy(pool[slot*size+kv*size/2:], values)
			}
		}
	}
	q, qf := g.normal(a.Batch*a.HeadsQ*dim, 1.5)
	a.Pool, a.Q = cuda.Floats(pool), qf
	a.args = cuda.DecodeArgs{
		Q: upload(g, q), Pool: upload(g, pool), Table: upload(g, a.Table), Context: upload(g, a.Context),
		Batch: int32(a.Batch), HeadsQ: int32(a.HeadsQ), HeadsKV: int32(kvHeads), HeadDim: int32(dim),
		BlockTokens: int32(blockTokens), TableStride: int32(a.TableStride),
		MaxBlocks: int32(a.TableStride), Scale: float32(a.Scale),
	}
	return a
}

// unread returns entries that are never used; a GPU may read them.
func (g *fixture) unread(n int) []int32 {
	if g.emulated == nil {
		return make([]int32, n)
	}
	return slices.Repeat([]int32{math.MaxInt32}, n)
}

// choose gives each unit a random list of up to k of its blocks; every third unit gets none if
// empty is set.
func (g *fixture) choose(a *attention, k int, empty bool) {
	a.ListStride = max(k, 1)
	a.List, a.Count = g.unread(a.Units()*a.ListStride), make([]int32, a.Units())
	for unit := range a.Units() {
		if empty && unit%3 == 0 {
			continue
		}
		n := a.Blocks(unit / a.HeadsKV)
		order := g.r.Perm(n)[:min(k, n)]
		a.Count[unit] = int32(len(order))
		for i, block := range order {
			a.List[unit*a.ListStride+i] = int32(block)
		}
	}
	a.args.List, a.args.Count, a.args.ListStride, a.args.MaxBlocks = upload(g, a.List),
		upload(g, a.Count), int32(a.ListStride), int32(k)
}

// checkDecode runs the kernel with its own splits and with given ones, twice each: the workspace
// must come back clean, and the bytes be the same.
func (g *fixture) checkDecode(what string, a *attention, more ...int32) {
	g.t.Helper()
	want, wantLSE := a.Run()
	for _, splits := range append([]int32{0, 1, 3, 7}, more...) {
		args := a.args
		args.Splits = splits
		bytes, err := g.Workspace(&args)
		g.must(err)
		args.Workspace = g.zeroed(bytes)
		var before []cuda.Half
		for range 2 {
			args.Out, args.LSE = g.device(2*len(want)), g.device(4*len(wantLSE))
			g.must(g.Launch(&args, 0))
			name := fmt.Sprintf("%s, %d splits", what, splits)
			out := download[cuda.Half](g, args.Out, len(want))
			g.close(name, cuda.Floats(out), want, a.Dim)
			if before != nil && !slices.Equal(out, before) {
				g.t.Fatalf("%s: not the bytes of the run before", name)
			}
			before = out
			for i, lse := range download[float32](g, args.LSE, len(wantLSE)) {
				rounded := g.emulated == nil && math.Abs(float64(lse)-wantLSE[i]) < 2e-3
				if lse != float32(wantLSE[i]) && !rounded {
					g.t.Fatalf("%s: lse %d is %g, want %g", name, i, lse, wantLSE[i])
				}
			}
		}
	}
}

func TestDecode(t *testing.T) {
	g := newFixture(t, Config{})
	for _, c := range []struct {
		group, kvHeads, dim, block int
		contexts                   []int
	}{{1, 3, 128, 32, []int{1, 31, 32, 33}}, {4, 2, 64, 16, []int{177, 5, 0}},
		{7, 1, 64, 48, []int{100}}, {8, 1, 128, 16, []int{17, 64}}} {
		what := fmt.Sprintf("%+v", c)
		a := g.batch(c.group, c.kvHeads, c.dim, c.block, c.contexts...)
		g.checkDecode("dense, "+what, a)
		for _, k := range []int{1, 5, 64} {
			g.choose(a, k, k == 5)
			g.checkDecode(fmt.Sprintf("sparse, k %d, %s", k, what), a)
		}
	}
}

func TestDecodeFaults(t *testing.T) {
	g := newFixture(t, Config{})
	for _, c := range []struct {
		name, arg, why string
		change         func(*cuda.DecodeArgs)
	}{
		{"workspace as allocated", "Workspace", "not zero",
			func(d *cuda.DecodeArgs) { d.Workspace = g.device(1 << 16) }},
		{"workspace of fewer splits", "Workspace", "past the end",
			func(d *cuda.DecodeArgs) { d.Splits = 200 }},
		{"slot outside the pool", "Pool", "past the end",
			func(d *cuda.DecodeArgs) { d.Table = upload(g, []int32{0, 1, 2, 3, 1000}) }},
		{"slot -1", "Pool", "before the start",
			func(d *cuda.DecodeArgs) { d.Table = upload(g, []int32{-1, 1, 2, 3, 4}) }},
		{"table too short", "Table", "past the end",
			func(d *cuda.DecodeArgs) { d.Table = upload(g, []int32{0, 1, 2, 3}) }},
		{"block past the context", "List", "block 5 of 5", func(d *cuda.DecodeArgs) {
			d.List, d.Count, d.ListStride = upload(g, []int32{1, 5}), upload(g, []int32{2}), 2
		}},
		{"count above the list", "Count", "3 blocks in a list of 2", func(d *cuda.DecodeArgs) {
			d.List, d.Count, d.ListStride = upload(g, []int32{1, 4, 3}), upload(g, []int32{3}), 2
		}},
		{"more blocks than MaxBlocks", "Context", "MaxBlocks is 4",
			func(d *cuda.DecodeArgs) { d.MaxBlocks = 4 }},
		{"no context was written", "Context", "MaxBlocks",
			func(d *cuda.DecodeArgs) { d.Context = g.device(4) }},
		{"query off 16 bytes", "Q", "no multiple of 16", func(d *cuda.DecodeArgs) { d.Q += 8 }},
		{"output too short", "Out", "past the end", func(d *cuda.DecodeArgs) { d.Out = g.device(126) }},
	} {
		a := g.batch(1, 1, 64, 16, 80)
		args := a.args
		bytes, err := g.Workspace(&args)
		g.must(err)
		args.Workspace, args.Out = g.zeroed(bytes), g.device(128)
		g.must(g.Launch(&args, 0))
		c.change(&args)
		faults(t, c.name, g.Launch(&args, 0), c.arg, c.why)
	}
}

// Poison in a slot reaches the answer: a block used before it was loaded cannot hide.
func TestDecodeOfPoisonIsNaN(t *testing.T) {
	g := newFixture(t, Config{})
	a := g.batch(1, 1, 64, 16, 16)
	bytes, err := g.Workspace(&a.args)
	g.must(err)
	a.args.Pool, a.args.Out, a.args.Workspace = g.device(5*4*16*64), g.device(128), g.zeroed(bytes)
	g.must(g.Launch(&a.args, 0))
	for i, x := range cuda.Floats(download[cuda.Half](g, a.args.Out, 64)) {
		if !math.IsNaN(x) {
			t.Fatalf("value %d is %g", i, x)
		}
	}
}

func TestPrefill(t *testing.T) {
	g := newFixture(t, Config{})
	for _, c := range []struct{ group, kvHeads, dim, block, tokens, prefix int }{
		{1, 2, 128, 16, 1, 0}, {4, 1, 64, 32, 20, 37}, {1, 3, 64, 16, 33, 0}, {8, 1, 128, 16, 5, 100},
	} {
		what := fmt.Sprintf("%+v", c)
		headsQ, total := c.group*c.kvHeads, c.tokens+c.prefix
		q, qf := g.normal(c.tokens*headsQ*c.dim, 1.5)
		k, kf := g.normal(total*c.kvHeads*c.dim, 1)
		v, vf := g.normal(total*c.kvHeads*c.dim, 1)
		scale := float32(1 / math.Sqrt(float64(c.dim)))
		p := reference.Prefill{Shape: reference.Shape{Batch: 1, HeadsQ: headsQ, HeadsKV: c.kvHeads,
			Dim: c.dim}, Q: qf, K: kf, V: vf, QTokens: c.tokens, Prefix: c.prefix, Scale: float64(scale)}
		want := p.Run()
		rowQ, rowKV, dim := int64(headsQ*c.dim), int64(c.kvHeads*c.dim), int64(c.dim)
		args := cuda.PrefillArgs{Q: upload(g, q), K: upload(g, k), V: upload(g, v),
			Out: g.device(2 * len(q)), QTokenStride: rowQ, QHeadStride: dim, KTokenStride: rowKV,
			KHeadStride: dim, VTokenStride: rowKV, VHeadStride: dim, OutTokenStride: rowQ,
			OutHeadStride: dim, QTokens: int32(c.tokens), Prefix: int32(c.prefix),
			HeadsQ: int32(headsQ), HeadsKV: int32(c.kvHeads), HeadDim: int32(c.dim), Scale: scale}
		g.must(g.Launch(&args, 0))
		g.near(what, cuda.Floats(download[cuda.Half](g, args.Out, len(q))), want)

		// [head][token][d] by strides.
		transposed := make([]cuda.Half, len(v))
		for i := range v {
			token, head, d := i/int(rowKV), i/c.dim%c.kvHeads, i%c.dim
			transposed[(head*total+token)*c.dim+d] = v[i]
		}
		strided := args
		strided.V, strided.VTokenStride, strided.VHeadStride, strided.Out = upload(g, transposed), dim,
			dim*int64(total), g.device(2*len(q))
		g.must(g.Launch(&strided, 0))
		g.near(what+", strided", cuda.Floats(download[cuda.Half](g, strided.Out, len(q))), want)

		// Keys and values in blocks of a pool, its other slots NaN.
		blocks, size := (total+c.block-1)/c.block, 2*c.block*c.dim
		slots := g.r.Perm(c.kvHeads*blocks + 2)
		pool, table := slices.Repeat([]cuda.Half{0x7e00}, len(slots)*size),
			make([]int32, c.kvHeads*(blocks+1))
		for h := range c.kvHeads {
			for i := range total {
				slot := slots[h*blocks+i/c.block]
				table[h*(blocks+1)+i/c.block] = int32(slot)
				at, from := slot*size+i%c.block*c.dim, (i*c.kvHeads+h)*c.dim
				copy(pool[at:], k[from:from+c.dim])
				copy(pool[at+size/2:], v[from:from+c.dim])
			}
			table[h*(blocks+1)+blocks] = math.MaxInt32 // never read
		}
		paged := args
		paged.K, paged.V, paged.Out = 0, 0, g.device(2*len(q))
		paged.Pool, paged.Table, paged.TableStride, paged.BlockTokens = upload(g, pool), upload(g, table),
			int32(blocks+1), int32(c.block)
		g.must(g.Launch(&paged, 0))
		g.near(what+", paged", cuda.Floats(download[cuda.Half](g, paged.Out, len(q))), want)

		args.Prefix++
		faults(t, what+", keys too short", g.Launch(&args, 0), "K", "past the end")
	}
}

// slotsOf returns the slot of each entry of a batch's lists.
func (g *fixture) slotsOf(a *attention) []int32 {
	slots := g.unread(len(a.List))
	for unit := range a.Units() {
		for i := unit * a.ListStride; i < unit*a.ListStride+int(a.Count[unit]); i++ {
			slots[i] = a.Table[unit*a.TableStride+int(a.List[i])]
		}
	}
	return slots
}

// The same blocks by slots with the list, or by a table of pages, give the same answer.
func TestDecodeBySlotsAndPages(t *testing.T) {
	newFixture(t, Config{}).decodeBySlotsAndPages(4, 2, 64, 16, 177, 5, 64)
}

func (g *fixture) decodeBySlotsAndPages(group, kvHeads, dim, blockTokens int, contexts ...int) {
	a := g.batch(group, kvHeads, dim, blockTokens, contexts...)
	run := func(args cuda.DecodeArgs) []cuda.Half {
		bytes, err := g.Workspace(&args)
		g.must(err)
		args.Workspace, args.Out = g.zeroed(bytes), g.device(len(a.Q)*2)
		g.must(g.Launch(&args, 0))
		return download[cuda.Half](g, args.Out, len(a.Q))
	}
	// Block b of head h in slot page[b] * heads + h.
	size := 2 * a.BlockTokens * a.Dim
	pool := download[cuda.Half](g, a.args.Pool, len(a.Pool))
	pages := g.r.Perm(a.Batch*a.TableStride + 2)
	paged, table := make([]cuda.Half, len(pages)*a.HeadsKV*size), make([]int32, a.Batch*a.TableStride)
	for i := range table {
		table[i] = int32(pages[i])
		for h := range a.HeadsKV {
			if from := int(a.Table[(i/a.TableStride*a.HeadsKV+h)*a.TableStride+i%a.TableStride]); from !=
				math.MaxInt32 {
				copy(paged[(pages[i]*a.HeadsKV+h)*size:][:size], pool[from*size:])
			}
		}
	}
	byPages := func(args cuda.DecodeArgs) cuda.DecodeArgs {
		args.Pages, args.Table, args.Pool = 1, upload(g, table), upload(g, paged)
		return args
	}
	if !slices.Equal(run(byPages(a.args)), run(a.args)) {
		g.t.Error("dense decode differs with a table of pages")
	}
	g.choose(a, 7, false)
	want := run(a.args)
	if !slices.Equal(run(byPages(a.args)), want) {
		g.t.Error("sparse decode differs with a table of pages")
	}
	bySlots := a.args
	bySlots.Table, bySlots.Slot = 0, upload(g, g.slotsOf(a))
	if !slices.Equal(run(bySlots), want) {
		g.t.Error("decode differs with slots for the list")
	}
}
