//go:build gpu

package cuda

import (
	"slices"
	"testing"
)

// Blocks of any size become tensors, the last one as far as the context goes; what follows stays.
func TestGPUMIGather(t *testing.T) {
	onGPU(t, func(g *gpu) {
		const dim, heads = 128, 3
		for _, c := range []struct{ tokens, total int }{
			{16, 1}, {16, 150}, {32, 3000}, {48, 1000}, {256, 5000},
		} {
			blocks := (c.total + c.tokens - 1) / c.tokens
			stride, row := blocks+2, int64(c.total+5)*dim
			pool, values := g.normal(2*heads*(blocks+1)*c.tokens*dim, 1)
			table := make([]int32, heads*stride)
			for i, slot := range g.r.Perm(heads * (blocks + 1))[:heads*blocks] {
				table[i/blocks*stride+i%blocks] = int32(slot)
			}
			zero := make([]Half, heads*row)
			a := &MIGatherArgs{
				Pool:        upload(g, pool),
				Table:       upload(g, table),
				K:           upload(g, zero),
				V:           upload(g, zero),
				HeadStride:  row,
				TableStride: int32(stride),
				Tokens:      int32(c.total),
				Heads:       heads,
				BlockTokens: int32(c.tokens),
			}
			g.must(g.Launch(a, 0))
			for part, p := range []Ptr{a.K, a.V} {
				got := Floats(download[Half](g, p, heads*int(row)))
				for head := range heads {
					for i := range c.total {
						at := ((2*int(table[head*stride+i/c.tokens])+part)*c.tokens + i%c.tokens) * dim
						if !slices.Equal(got[head*int(row)+i*dim:][:dim], values[at:at+dim]) {
							t.Fatalf("%+v: part %d, head %d: token %d differs", c, part, head, i)
						}
					}
					if rest := got[head*int(row)+c.total*dim:][:5*dim]; slices.ContainsFunc(
						rest,
						func(x float64) bool { return x != 0 },
					) {
						t.Fatalf("%+v: part %d, head %d: written past the context", c, part, head)
					}
				}
			}
		}
	})
}
