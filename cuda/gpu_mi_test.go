//go:build gpu

package cuda

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda/reference"
)

// miCase is a prefill's shape and its tensors on the GPU and in float64.
type miCase struct {
	group, kvHeads, tokens, prefix int
	q, k, v                        []float64
	args                           PrefillArgs
}

func (c *miCase) String() string {
	return fmt.Sprintf("%d tokens, prefix %d, %d x %d heads", c.tokens, c.prefix, c.kvHeads, c.group)
}

func (c *miCase) tiles() int { return (c.tokens + 127) / 128 }

// fill draws the tensors; rows of NaN follow keys and values.
func (c *miCase) fill(g *gpu) *miCase {
	const dim = 128
	heads, total := c.group*c.kvHeads, c.tokens+c.prefix
	q, qf := g.normal(c.tokens*heads*dim, 1.5)
	k, kf := g.normal(total*c.kvHeads*dim, 1)
	v, vf := g.normal(total*c.kvHeads*dim, 1)
	c.q, c.k, c.v = qf, kf, vf
	poison := slices.Repeat([]Half{0x7e00}, 256*c.kvHeads*dim)
	rowQ, rowKV := int64(heads*dim), int64(c.kvHeads*dim)
	c.args = PrefillArgs{Q: upload(g, append(q, poison...)), K: upload(g, append(k, poison...)),
		V: upload(g, append(v, poison...)), Out: g.device(int64(c.tokens*heads*dim) * 2),
		QTokenStride: rowQ, QHeadStride: dim, KTokenStride: rowKV, KHeadStride: dim,
		VTokenStride: rowKV, VHeadStride: dim, OutTokenStride: rowQ, OutHeadStride: dim,
		QTokens: int32(c.tokens), Prefix: int32(c.prefix), HeadsQ: int32(heads),
		HeadsKV: int32(c.kvHeads), HeadDim: dim, Scale: float32(1 / math.Sqrt(dim))}
	return c
}

// compare runs the attention and holds it against the masked dense reference.
func (c *miCase) compare(g *gpu, what string, a *MIAttendArgs,
	sees func(head, query, key int) int) {
	g.t.Helper()
	const dim = 128
	heads := c.group * c.kvHeads
	m := reference.Prefill{Shape: reference.Shape{Batch: 1, HeadsQ: heads, HeadsKV: c.kvHeads,
		Dim: dim}, Q: c.q, K: c.k, V: c.v, QTokens: c.tokens, Prefix: c.prefix,
		Scale: 1 / math.Sqrt(dim), Sees: sees}
	g.must(g.Launch(a, 0))
	got := Floats(download[Half](g, c.args.Out, c.tokens*heads*dim))
	if c.tokens <= 600 {
		g.near(what, got, m.Run(), dim, 1e-3, 4e-3)
		return
	}
	row := make([]float64, heads*dim)
	for _, i := range append(g.r.Perm(c.tokens)[:40], 0, 63, 64, 127, 128, c.tokens-1) {
		m.Row(i, row)
		g.near(fmt.Sprintf("%s, query %d", what, i), got[i*heads*dim:][:heads*dim], row, dim, 2e-3, 4e-3)
	}
}

// miCases ends with long ones, which -short skips.
func miCases() []miCase {
	cases := []miCase{
		{group: 1, kvHeads: 2, tokens: 1}, {group: 1, kvHeads: 1, tokens: 1, prefix: 70},
		{group: 4, kvHeads: 1, tokens: 63}, {group: 8, kvHeads: 1, tokens: 129},
		{group: 1, kvHeads: 3, tokens: 200, prefix: 333}, {group: 4, kvHeads: 2, tokens: 300},
		{group: 1, kvHeads: 1, tokens: 128, prefix: 64},
		{group: 1, kvHeads: 1, tokens: 577, prefix: 1000},
		{group: 2, kvHeads: 1, tokens: 3001, prefix: 2048}, {group: 1, kvHeads: 1, tokens: 6000},
	}
	if testing.Short() {
		return cases[:len(cases)-3]
	}
	return cases
}

func TestGPUMIDense(t *testing.T) {
	onGPU(t, func(g *gpu) {
		for _, c := range miCases() {
			c.fill(g)
			a := &MIAttendArgs{Prefill: c.args}
			hopper, err := g.OnHopper(a)
			g.must(err)
			c.compare(g, fmt.Sprintf("dense, %v, hopper %v", &c, hopper), a,
				func(_, query, key int) int { return one(key <= c.prefix+query) })
		}
	})
}

func TestGPUMIAShape(t *testing.T) {
	onGPU(t, func(g *gpu) {
		for _, c := range miCases() {
			c.fill(g)
			for _, s := range []struct{ sink, window int }{{0, 1}, {1, 64}, {64, 100}, {130, 257},
				{1000, 4000}} {
				c.compare(g, fmt.Sprintf("A-shape %+v, %v", s, &c),
					&MIAttendArgs{Prefill: c.args, Sink: int32(s.sink), Window: int32(s.window)},
					func(_, query, key int) int {
						p := c.prefix + query
						return one(key <= p && (key < s.sink || p-key < s.window))
					})
			}
		}
	})
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// miLists are the lists of a call.
type miLists struct {
	blockStride, columnStride int
	blocks, columns, counts   []int32
}

// random draws lists with a limited number of blocks of each kind and columns for every tile.
func (c *miCase) random(g *gpu, blocks, columns int) miLists {
	rows := c.group * c.kvHeads * c.tiles()
	l := miLists{blockStride: 3*blocks + 1, columnStride: columns + 2}
	l.blocks, l.columns = make([]int32, rows*l.blockStride), make([]int32, rows*l.columnStride)
	l.counts = make([]int32, rows*4)
	for i := range l.blocks {
		l.blocks[i] = math.MaxInt32 // never read
	}
	for row := range rows {
		end := min(c.prefix+(row%c.tiles()+1)*128, c.prefix+c.tokens)
		n := 0
		for kind := range 3 {
			count := g.r.IntN(blocks + 1)
			l.counts[row*4+kind] = int32(count)
			for range count {
				l.blocks[row*l.blockStride+n] = int32(g.r.IntN(end))
				n++
			}
		}
		l.counts[row*4+3] = int32(g.r.IntN(columns + 1))
		for i := range int(l.counts[row*4+3]) {
			l.columns[row*l.columnStride+i] = int32(g.r.IntN(end)) |
				int32(uint32(g.r.IntN(4)*g.r.IntN(2))<<30)
		}
	}
	return l
}

// sees counts how often a query sees a key by the lists.
func (c *miCase) sees(l miLists) func(head, query, key int) int {
	seen := map[[2]int]map[int]int{} // of a half tile
	return func(head, query, key int) int {
		if key > c.prefix+query {
			return 0
		}
		at := [2]int{head, query / 64}
		if seen[at] == nil {
			seen[at] = l.keys(head*c.tiles()+query/128, query/64%2)
		}
		return seen[at][key]
	}
}

// keys counts the keys of a row of the lists that a half lists.
func (l miLists) keys(row, half int) map[int]int {
	keys := map[int]int{}
	n := l.counts[row*4:][:4]
	list := l.blocks[row*l.blockStride:][:n[0]+n[1]+n[2]]
	own := append(slices.Clone(list[:n[0]]), [][]int32{list[n[0]:][:n[1]], list[n[0]+n[1]:]}[half]...)
	for _, start := range own {
		for i := range 64 {
			keys[int(start)+i]++
		}
	}
	for _, e := range l.columns[row*l.columnStride:][:n[3]] {
		if uint32(e)>>(30+half)&1 == 0 {
			keys[int(e&(1<<30-1))]++
		}
	}
	return keys
}

func TestGPUMILists(t *testing.T) {
	onGPU(t, func(g *gpu) {
		for _, c := range miCases() {
			c.fill(g)
			for _, s := range []struct{ blocks, columns int }{{1, 0}, {0, 3}, {3, 0}, {4, 200}, {9, 700}} {
				l := c.random(g, s.blocks, s.columns)
				c.compare(g, fmt.Sprintf("lists %+v, %v", s, &c), &MIAttendArgs{Prefill: c.args,
					BlockStride: int32(l.blockStride), ColumnStride: int32(l.columnStride),
					Blocks: upload(g, l.blocks), Columns: upload(g, l.columns),
					Counts: upload(g, l.counts)}, c.sees(l))
			}
		}
	})
}
