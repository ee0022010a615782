package emulator

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/reference"
)

func TestLinear(t *testing.T) {
	g := newFixture(t, Config{})
	for _, c := range []struct{ tokens, in, out int }{{1, 64, 96}, {3, 256, 40}, {33, 8, 5},
		{8, 96, 128}} {
		x, xf := g.normal(c.tokens*c.in, 1)
		w, wf := g.normal(c.out*c.in, 0.1)
		want := make([]float64, c.tokens*c.out)
		for i := range want {
			want[i] = dot(xf[i/c.out*c.in:][:c.in], wf[i%c.out*c.in:])
		}
		args := &cuda.LinearArgs{X: upload(g, x), W: upload(g, w), Y: g.device(2 * len(want)),
			Tokens: int32(c.tokens), In: int32(c.in), Out: int32(c.out)}
		g.must(g.Launch(args, 0))
		g.near(fmt.Sprintf("%+v", c), cuda.Floats(download[cuda.Half](g, args.Y, len(want))), want)
		args.W += 2
		faults(t, "weights too short", g.Launch(args, 0), "W", "2 bytes past the end")
	}
}

func TestEmbed(t *testing.T) {
	g := newFixture(t, Config{})
	const vocab, hidden = 9, 24
	table, _ := g.normal(vocab*hidden, 1)
	tokens := []int32{8, 0, 3}
	args := &cuda.EmbedArgs{Table: upload(g, table), Token: pinned(g, tokens).Ptr(),
		Out: g.device(len(tokens) * hidden * 2), Tokens: int32(len(tokens)), Hidden: hidden}
	g.must(g.Launch(args, 0))
	got := download[cuda.Half](g, args.Out, len(tokens)*hidden)
	for i, token := range tokens {
		if !slices.Equal(got[i*hidden:][:hidden], table[token*hidden:][:hidden]) {
			t.Errorf("token %d: another row", token)
		}
	}
}

// equal compares with values already rounded to fp16.
func (g *fixture) equal(what string, got []cuda.Half, want []float64) {
	g.t.Helper()
	if !slices.Equal(cuda.Floats(got), want) {
		g.t.Errorf("%s differs", what)
	}
}

func TestRMSNorm(t *testing.T) {
	g := newFixture(t, Config{})
	const rows, hidden = 5, 40
	x, xf := g.normal(rows*hidden, 3)
	weight, weightF := g.normal(hidden, 1)
	r, rf := g.normal(rows*hidden, 20)
	args := cuda.RMSNormArgs{X: upload(g, x), Weight: upload(g, weight),
		Out: g.device(rows * hidden * 2), Rows: rows, Hidden: hidden, Eps: 1e-5}
	check := func(what string, of []float64) {
		g.must(g.Launch(&args, 0))
		var want []float64
		for i := range rows {
			want = append(want, reference.RMSNorm(of[i*hidden:][:hidden], weightF,
				float64(float32(1e-5)), cuda.Rounded)...)
		}
		g.equal(what, download[cuda.Half](g, args.Out, rows*hidden), want)
	}
	check("norm", xf)
	from, gathered := []int32{4, 4, 0, 2, 1}, []float64{}
	for _, i := range from {
		gathered = append(gathered, xf[int(i)*hidden:][:hidden]...)
	}
	args.Row = upload(g, from)
	check("chosen rows", gathered)
	sum := make([]float64, rows*hidden)
	for i := range sum {
		sum[i] = cuda.Rounded(rf[i] + xf[i])
	}
	args.Row, args.Residual, args.Out = 0, upload(g, r), args.X // in place
	check("with residual", sum)
	g.equal("residual", download[cuda.Half](g, args.Residual, len(sum)), sum)
}

func TestRope(t *testing.T) {
	g := newFixture(t, Config{})
	for _, c := range []struct{ headsQ, headsKV, dim, block int }{{4, 1, 64, 16}, {3, 3, 128, 32}} {
		what := fmt.Sprintf("%+v", c)
		heads, size := c.headsQ+2*c.headsKV, 2*c.block*c.dim
		// Tokens of two rows; the table of the second starts at its block 50.
		row, first := []int32{0, 1, 0, 1, 0}, []int32{0, 50}
		position := []int32{0, int32(50 * c.block), int32(c.block), int32(51*c.block + 3),
			int32(c.block + 7)}
		rowStride, headStride := int64(c.headsKV*3+1), int64(3)
		table, slots := make([]int32, 2*rowStride), g.r.Perm(int(2*rowStride)+2)
		for i := range table {
			table[i] = int32(slots[i])
		}
		freq := make([]float32, c.dim/2)
		for d := range freq {
			freq[d] = float32(math.Pow(10000, -2*float64(d)/float64(c.dim)))
		}
		qkv, x := g.normal(len(row)*heads*c.dim, 1)
		args := &cuda.RopeArgs{QKV: upload(g, qkv), Position: upload(g, position),
			InvFreq: upload(g, freq), QOut: g.device(len(row) * c.headsQ * c.dim * 2),
			Pool: g.device(len(slots) * size * 2), Table: upload(g, table), Row: upload(g, row),
			First: upload(g, first), RowStride: rowStride, HeadStride: headStride,
			Tokens: int32(len(row)), HeadsQ: int32(c.headsQ), HeadsKV: int32(c.headsKV),
			HeadDim: int32(c.dim), BlockTokens: int32(c.block)}
		g.must(g.Launch(args, 0))
		var want, wantQ []float64
		pool := slices.Repeat([]cuda.Half{0x7e7e}, len(slots)*size)
		for i, p := range position {
			angle := make([]float64, c.dim/2)
			for d := range angle {
				angle[d] = float64(float32(p) * freq[d])
			}
			for h := range heads {
				head := x[(i*heads+h)*c.dim:][:c.dim]
				if h < c.headsQ+c.headsKV {
					head = reference.Rope(head, angle, cuda.Rounded)
				}
				want = append(want, head...)
				if h < c.headsQ {
					wantQ = append(wantQ, head...)
					continue
				}
				kv, part := (h-c.headsQ)%c.headsKV, (h-c.headsQ)/c.headsKV
				slot := int(table[int64(row[i])*rowStride+int64(kv)*headStride+int64(p)/int64(c.block)-
					int64(first[row[i]])])
				store(pool[slot*size+part*size/2+int(p)%c.block*c.dim:], head)
			}
		}
		g.equal(what+": qkv", download[cuda.Half](g, args.QKV, len(qkv)), want)
		g.equal(what+": packed q", download[cuda.Half](g, args.QOut, len(wantQ)), wantQ)
		if !slices.Equal(download[cuda.Half](g, args.Pool, len(pool)), pool) {
			t.Errorf("%s: the blocks do not hold the rotated k and v, or more than them", what)
		}
		args.Position = upload(g, []int32{0, 0, 0, 0, 0})
		faults(t, what+", a position before its row", g.Launch(args, 0), "Position",
			"whose first block is 50")
		// Without a pool or a place for q, v stays and nothing else is touched.
		bare := &cuda.RopeArgs{QKV: upload(g, qkv), Position: upload(g, position), InvFreq: args.InvFreq,
			Tokens: args.Tokens, HeadsQ: args.HeadsQ, HeadsKV: args.HeadsKV, HeadDim: args.HeadDim}
		g.must(g.Launch(bare, 0))
		g.equal(what+": qkv without a pool", download[cuda.Half](g, bare.QKV, len(qkv)), want)
	}
}

func TestSiluMul(t *testing.T) {
	g := newFixture(t, Config{})
	const tokens, ffn = 3, 24
	x, xf := g.normal(tokens*2*ffn, 3)
	args := &cuda.SiluMulArgs{X: upload(g, x), Out: g.device(tokens * ffn * 2),
		Tokens: tokens, FFN: ffn}
	g.must(g.Launch(args, 0))
	var want []float64
	for i := range tokens {
		want = append(want, reference.SiluMul(xf[i*2*ffn:][:2*ffn], cuda.Rounded)...)
	}
	g.equal("out", download[cuda.Half](g, args.Out, tokens*ffn), want)
}

func TestArgmax(t *testing.T) {
	g := newFixture(t, Config{})
	const stride, plusInf, minusInf, nan = 7, 0x7c00, 0xfc00, 0x7e00
	logits := []cuda.Half{ // the last two of each row are beyond the vocabulary
		0, 0x3c00, nan, 0x3c00, 0, plusInf, plusInf,
		minusInf, minusInf, minusInf, minusInf, minusInf, plusInf, plusInf,
		0x8000, 0, 0x8000, 0, 0, plusInf, plusInf,
		0xc000, 0xbc00, nan, nan, 0xbc00, plusInf, plusInf,
	}
	args := &cuda.ArgmaxArgs{Logits: upload(g, logits), Out: g.device(16), Rows: 4, Vocab: 5,
		Stride: stride}
	g.must(g.Launch(args, 0))
	if got := download[int32](g, args.Out, 4); !slices.Equal(got, []int32{1, 0, 0, 1}) {
		t.Errorf("%v", got)
	}
}

// KVWrite after Rope writes the blocks that Rope by itself does, with slots and with pages.
func TestKVWrite(t *testing.T) {
	g := newFixture(t, Config{})
	const tokens, headsQ, headsKV, dim, block, blocks = 40, 4, 2, 64, 16, 4
	qkv, _ := g.normal(tokens*(headsQ+2*headsKV)*dim, 1)
	position := make([]int32, tokens)
	for i := range position {
		position[i] = int32(i + 21) // the first block begins with token 16
	}
	pages, table := []int32{4, 0, 2, 5}, make([]int32, headsKV*blocks)
	for i := range table {
		table[i] = pages[i%blocks]*headsKV + int32(i/blocks)
	}
	const values = 6 * headsKV * 2 * block * dim
	args := cuda.RopeArgs{Position: upload(g, position),
		InvFreq: upload(g, slices.Repeat([]float32{0.1}, dim/2)), Table: upload(g, table),
		First:     upload(g, []int32{1}),
		RowStride: headsKV * blocks, HeadStride: blocks, Tokens: tokens, HeadsQ: headsQ, HeadsKV: headsKV,
		HeadDim: dim, BlockTokens: block}
	run := func(args cuda.RopeArgs, apart bool) []cuda.Half {
		args.QKV, args.Pool = upload(g, qkv), g.device(values*2)
		if first := args; apart {
			first.Pool = 0
			g.must(g.Launch(&first, 0))
			g.must(g.Launch((*cuda.KVWriteArgs)(&args), 0))
		} else {
			g.must(g.Launch(&args, 0))
		}
		return download[cuda.Half](g, args.Pool, values)
	}
	want, written := run(args, false), 0
	for _, h := range want {
		if h != 0x7e7e {
			written++
		}
	}
	if written != 2*tokens*headsKV*dim {
		t.Fatalf("%d values written, want %d", written, 2*tokens*headsKV*dim)
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
}
