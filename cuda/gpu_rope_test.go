//go:build gpu

package cuda

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda/reference"
)

// ropeCase is a random batch of tokens from several rows, with the KV blocks that its tokens go to.
type ropeCase struct {
	tokens, headsQ, headsKV, dim, block int
	// tokens of several rows, whose tables start at different blocks; else one row from block 0
	rows        bool
	store, pack bool
}

func (g *gpu) rope(c ropeCase) {
	g.t.Helper()
	what := fmt.Sprintf("%+v", c)
	heads := c.headsQ + 2*c.headsKV
	qkv, x := g.normal(c.tokens*heads*c.dim, 1)
	freq := make([]float32, c.dim/2)
	for d := range freq {
		freq[d] = float32(math.Pow(10000, -2*float64(d)/float64(c.dim)))
	}
	// Each row's tokens have positions of their own, so that no two share a place; the table of row
	// r starts at block first[r].
	rows := 1
	if c.rows {
		rows = 3
	}
	first, last := make([]int32, rows), make([]int32, rows)
	for r := range first {
		if c.rows {
			first[r] = []int32{0, 2000, 60000}[r]
		}
		last[r] = first[r]*int32(c.block) + int32(g.r.IntN(c.block))
	}
	position, row := make([]int32, c.tokens), make([]int32, c.tokens)
	for i := range position {
		row[i] = int32(g.r.IntN(rows))
		position[i] = last[row[i]]
		last[row[i]] += 1 + int32(g.r.IntN(3))
	}
	blocks := 3*c.tokens/c.block + 3
	headStride, rowStride := int64(blocks+1), int64(blocks+1)*int64(c.headsKV)+5
	table, slots := make([]int32, int(rowStride)*rows), g.r.Perm(int(rowStride)*rows+2)
	for i := range table {
		table[i] = int32(slots[i])
	}
	size := 2 * c.block * c.dim
	args := &RopeArgs{QKV: upload(g, qkv), Position: upload(g, position), InvFreq: upload(g, freq),
		RowStride: rowStride, HeadStride: headStride, Tokens: int32(c.tokens),
		HeadsQ: int32(c.headsQ), HeadsKV: int32(c.headsKV), HeadDim: int32(c.dim),
		BlockTokens: int32(c.block)}
	if c.rows {
		args.Row, args.First = upload(g, row), upload(g, first)
	}
	if c.store {
		args.Pool, args.Table = g.device(int64(len(slots)*size)*2), upload(g, table)
	}
	if c.pack {
		args.QOut = g.device(int64(c.tokens*c.headsQ*c.dim) * 2)
	}
	g.must(g.Launch(args, 0))

	var want []float64
	pool := slices.Repeat([]Half{0xffff}, len(slots)*size)
	got := download[Half](g, args.QKV, len(qkv))
	for i := range c.tokens {
		angle := make([]float64, c.dim/2)
		for d := range angle {
			angle[d] = float64(float32(position[i]) * freq[d])
		}
		for h := range heads {
			at := (i*heads + h) * c.dim
			head := x[at : at+c.dim]
			if h < c.headsQ+c.headsKV {
				head = reference.Rope(head, angle, Rounded)
			}
			want = append(want, head...)
			if h >= c.headsQ {
				kv, part := (h-c.headsQ)%c.headsKV, (h-c.headsQ)/c.headsKV
				slot := table[int64(row[i])*rowStride+int64(kv)*headStride+
					int64(position[i]/int32(c.block)-first[row[i]])]
				copy(pool[int(slot)*size+part*size/2+int(position[i])%c.block*c.dim:], got[at:at+c.dim])
			}
		}
	}
	g.same(what, Floats(got), want, c.dim)
	if c.store && !slices.Equal(download[Half](g, args.Pool, len(pool)), pool) {
		g.t.Errorf("%s: the blocks do not hold the rotated k and v, or more than them", what)
	}
	if !c.pack {
		return
	}
	packed := download[Half](g, args.QOut, c.tokens*c.headsQ*c.dim)
	for i := range c.tokens {
		if n := c.headsQ * c.dim; !slices.Equal(packed[i*n:(i+1)*n], got[i*heads*c.dim:][:n]) {
			g.t.Errorf("%s: packed q of token %d differs", what, i)
			return
		}
	}
}

func TestGPURope(t *testing.T) {
	onGPU(t, func(g *gpu) {
		for _, c := range []ropeCase{
			{1, 32, 32, 128, 32, false, true, true}, {1, 32, 8, 128, 32, true, true, true},
			{1, 8, 1, 64, 16, false, true, true}, {77, 8, 8, 128, 16, true, true, true},
			{130, 8, 2, 128, 32, false, true, true}, {33, 8, 1, 128, 48, true, true, true},
			{45, 3, 3, 64, 32, true, true, true}, {9, 8, 1, 64, 64, true, true, false},
			{9, 4, 4, 128, 32, false, false, false}, {9, 4, 1, 64, 32, false, false, true},
			{300, 32, 8, 128, 32, true, true, true},
		} {
			g.rope(c)
		}
	})
}
