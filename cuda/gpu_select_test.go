//go:build gpu

package cuda

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda/reference"
)

func TestGPUDigest(t *testing.T) {
	onGPU(t, func(g *gpu) {
		for _, c := range []struct{ dim, block, count int }{
			{128, 32, 100}, {128, 32, 300}, {128, 16, 3}, {128, 8, 5}, {128, 64, 33}, {64, 8, 9},
			{64, 16, 4}, {64, 32, 7}, {64, 64, 1},
			// no power of two; more than one tile
			{128, 1, 6}, {128, 7, 6}, {128, 45, 6}, {128, 100, 6}, {64, 3, 6}, {64, 61, 6}, {64, 200, 6},
		} {
			size := 2 * c.block * c.dim
			pool, poolF := g.normal(2*c.count*size, 2)
			slots, places := g.r.Perm(2 * c.count)[:c.count], g.r.Perm(2 * c.count)[:c.count]
			slot, dst := make([]int32, c.count), make([]int64, c.count)
			for i := range slot {
				slot[i], dst[i] = int32(slots[i]), int64(places[i])
			}
			meta := g.device(int64(2 * c.count * 2 * c.dim * 2))
			g.must(g.Launch(&DigestArgs{Pool: upload(g, pool), Slot: upload(g, slot), Dst: upload(g, dst),
				Meta: meta, Count: int64(c.count), HeadDim: int32(c.dim), BlockTokens: int32(c.block)}, 0))
			got := download[Half](g, meta, 2*c.count*2*c.dim)
			written := map[int64]bool{}
			for i := range slot {
				hi, lo := reference.Digest(poolF[slots[i]*size:][:c.block*c.dim], c.dim)
				g.near(fmt.Sprintf("digest %d of %+v", i, c), Floats(got[dst[i]*int64(2*c.dim):][:2*c.dim]),
					append(hi, lo...), c.dim, 5e-4, 5e-4)
				written[dst[i]] = true
			}
			for i := range int64(2 * c.count) {
				if !written[i] && got[i*int64(2*c.dim)] != 0xffff {
					t.Errorf("%+v: digest %d was written and not asked for", c, i)
				}
			}
		}
	})
}

// selection is a batch of queries and digests with the reference's scores.
type selection struct {
	args   ScoresArgs
	counts []int32
	want   [][]float64
}

func (g *gpu) selection(group, kvHeads, dim int, counts ...int) *selection {
	units := len(counts)
	batch := units / kvHeads
	q, qf := g.normal(batch*group*kvHeads*dim, 1)
	s := &selection{}
	var meta []Half
	var first []int64
	stride := 1
	for unit, n := range counts {
		first = append(first, int64(len(meta)/(2*dim)))
		s.counts = append(s.counts, int32(n))
		stride = max(stride, n)
		scores := make([]float64, n)
		for i := range n {
			keys := make([]float64, 4*dim)
			for j := range keys {
				keys[j] = g.r.NormFloat64()
			}
			hi, lo := reference.Digest(keys, dim)
			for d := range dim {
				h, l := HalfOf(hi[d]), HalfOf(lo[d])
				hi[d], lo[d] = h.Float(), l.Float()
			}
			for _, x := range append(slices.Clone(hi), lo...) {
				meta = append(meta, HalfOf(x))
			}
			scores[i] = reference.Score(qf[unit*group*dim:][:group*dim], hi, lo)
		}
		s.want = append(s.want, scores)
	}
	s.args = ScoresArgs{
		Q: upload(g, q), Meta: upload(g, meta), First: upload(g, first), Count: upload(g, s.counts),
		Scores: g.device(int64(units*stride) * 4), Batch: int32(batch), HeadsQ: int32(group * kvHeads),
		HeadsKV: int32(kvHeads), HeadDim: int32(dim), ScoreStride: int32(stride),
		MaxBlocks: int32(stride),
	}
	return s
}

func TestGPUScores(t *testing.T) {
	onGPU(t, func(g *gpu) {
		for _, c := range []struct {
			group, kvHeads, dim int
			counts              []int
		}{{1, 2, 128, []int{1, 1000, 33, 0}}, {4, 2, 128, []int{77, 500}}, {8, 1, 64, []int{129, 2}},
			{7, 1, 128, []int{63}}} {
			s := g.selection(c.group, c.kvHeads, c.dim, c.counts...)
			g.must(g.Launch(&s.args, 0))
			got := download[float32](g, s.args.Scores, len(c.counts)*int(s.args.ScoreStride))
			for unit, want := range s.want {
				for i := range int(s.args.ScoreStride) {
					score := float64(got[unit*int(s.args.ScoreStride)+i])
					if i >= len(want) {
						if !math.IsNaN(score) {
							t.Fatalf("%+v: score %d of unit %d was written past its end", c, i, unit)
						}
					} else if !(math.Abs(score-want[i]) < 1e-4*(1+math.Abs(want[i]))) {
						t.Fatalf("%+v: score %d of unit %d is %g, want %g", c, i, unit, score, want[i])
					}
				}
			}
		}
	})
}

func TestGPUTopK(t *testing.T) {
	onGPU(t, func(g *gpu) {
		draws := map[string]func() float64{
			"normal": g.r.NormFloat64,
			"ties":   func() float64 { return float64(g.r.IntN(5)) - 2 },
			"equal":  func() float64 { return 1.5 },
			"extreme": func() float64 {
				return []float64{math.Inf(-1), math.Inf(1), 0, math.Copysign(0, -1), 1e-40, -1e38}[g.r.IntN(6)]
			},
			"close":    func() float64 { return 1 + 1e-6*g.r.Float64() },
			"negative": func() float64 { return -math.Exp(10 * g.r.NormFloat64()) },
		}
		for name, draw := range draws {
			for _, c := range []struct{ n, k, sink, window int }{
				{1, 1, 0, 0}, {1000, 64, 2, 2}, {129, 1, 0, 0}, {131, 128, 2, 2}, {1000, 129, 2, 2},
				{600, 256, 0, 0}, {1024, 64, 0, 0}, {513, 512, 1, 0}, {700, 257, 0, 3}, {64, 64, 2, 2},
				{30, 64, 2, 2}, {5000, 4096, 2, 2}, {32768, 64, 2, 2},
				{32768, 1000, 0, 1}, {100, 0, 2, 2}, {100, 3, 2, 2}, {0, 4, 2, 2},
			} {
				const units = 3
				stride := c.n + 5
				scores, blocks := make([]float32, units*stride), make([]int32, units)
				for u := range units {
					blocks[u] = int32(max(0, c.n-u))
					for i := range stride {
						scores[u*stride+i] = float32(draw())
						if i < c.sink || i >= int(blocks[u])-c.window {
							scores[u*stride+i] = float32(math.NaN()) // not to be read
						}
					}
				}
				list, count := g.device(int64(units*max(c.k, 1))*4), g.device(units*4)
				g.must(g.Launch(&TopKArgs{Scores: upload(g, scores), Blocks: upload(g, blocks), List: list,
					Count: count, Units: units, ScoreStride: int32(stride),
					ListStride: int32(max(c.k, 1)), K: int32(c.k), Sink: int32(c.sink), Window: int32(c.window)},
					0))
				gotList, gotCount := download[int32](g, list, units*max(c.k, 1)),
					download[int32](g, count, units)
				for u := range units {
					row := make([]float64, blocks[u])
					for i := range row {
						row[i] = float64(scores[u*stride+i])
					}
					want := reference.TopK(row, c.k, c.sink, c.window)
					if int(gotCount[u]) != len(want) || !slices.Equal(gotList[u*max(c.k, 1):][:len(want)], want) {
						t.Fatalf("%s %+v, unit %d: %d blocks, %v; want %d, %v", name, c, u, gotCount[u],
							head(gotList[u*max(c.k, 1):]), len(want), head(want))
					}
				}
			}
		}
	})
}

func head(x []int32) []int32 { return x[:min(len(x), 12)] }

// By units against the SMs of an H200: clusters of 8, 4 and 2 CTAs a unit, and none. Some units
// have no digest, or no block at all.
func TestGPUSelect(t *testing.T) {
	onGPU(t, func(g *gpu) {
		for _, c := range []struct{ group, kvHeads, batch, dim, most, k int }{
			{1, 4, 1, 128, 1024, 64}, {4, 2, 3, 128, 777, 1}, {8, 1, 5, 64, 2500, 300},
			{1, 50, 1, 128, 300, 64}, {1, 50, 2, 64, 270, 130}, {1, 150, 2, 128, 100, 16},
		} {
			counts := make([]int, c.batch*c.kvHeads)
			for i := range counts {
				counts[i] = c.most >> (i % 3)
			}
			s := g.selection(c.group, c.kvHeads, c.dim, counts...)
			units := len(s.counts)
			blocks := slices.Clone(s.counts)
			for i := range blocks {
				switch i % 4 {
				case 1:
					blocks[i]++ // the open block has no digest
				case 3:
					blocks[i] = 0
				}
			}
			s.args.ScoreStride, s.args.MaxBlocks = int32(c.most+1), int32(c.most+1)
			s.args.Scores = g.device(int64(units*(c.most+1)) * 4)
			g.must(g.Launch(&s.args, 0))
			two := TopKArgs{Scores: s.args.Scores, Blocks: upload(g, blocks),
				List: g.device(int64(units*c.k) * 4), Count: g.device(int64(units) * 4), Units: int32(units),
				ScoreStride: s.args.ScoreStride, ListStride: int32(c.k), K: int32(c.k), Sink: 2, Window: 2}
			// What has no digest scores less than all others.
			scores := download[float32](g, s.args.Scores, units*(c.most+1))
			for u := range units {
				for i := int(s.counts[u]); i < int(blocks[u]); i++ {
					scores[u*(c.most+1)+i] = float32(math.Inf(-1))
				}
			}
			g.must(Upload(g.Session, s.args.Scores, scores))
			g.must(g.Launch(&two, 0))
			one := two
			one.Scores, one.List, one.Count = 0, g.device(int64(units*c.k)*4), g.device(int64(units)*4)
			s.args.Scores = g.device(int64(units*(c.most+1)) * 4)
			arrived := g.zeroed(int64(units) * 4)
			for range 2 {
				g.must(g.Launch(&SelectArgs{Scores: s.args, TopK: one, Arrived: arrived}, 0))
			}
			a, b := download[int32](g, two.Count, units), download[int32](g, one.Count, units)
			if !slices.Equal(a, b) {
				t.Fatalf("%+v: counts %v and %v", c, head(a), head(b))
			}
			x, y := download[int32](g, two.List, units*c.k), download[int32](g, one.List, units*c.k)
			for u := range units {
				n := int(a[u])
				if !slices.Equal(x[u*c.k:][:n], y[u*c.k:][:n]) {
					t.Fatalf("%+v, unit %d: lists differ: %v and %v", c, u, head(x[u*c.k:][:n]),
						head(y[u*c.k:][:n]))
				}
			}
		}
	})
}

// The fused kernel must choose exactly what the two separate kernels choose.
func TestGPUSelectIsScoresThenTopK(t *testing.T) {
	onGPU(t, func(g *gpu) {
		for _, dim := range []int{64, 128} {
			s := g.selection(4, 2, dim, 1000, 999, 65, 3, 0, 1)
			blocks := slices.Clone(s.counts)
			for i := range blocks {
				blocks[i]++ // the open block has no digest; the window brings it in
			}
			s.args.ScoreStride, s.args.MaxBlocks = 1001, 1001
			s.args.Scores = g.device(6 * 1001 * 4)
			g.must(g.Launch(&s.args, 0))
			const k = 64
			top := TopKArgs{Scores: s.args.Scores, Blocks: upload(g, blocks), List: g.device(6 * k * 4),
				Count: g.device(6 * 4), Units: 6, ScoreStride: 1001, ListStride: k, K: k, Sink: 2, Window: 2}
			g.must(g.Launch(&top, 0))
			fused := top
			fused.Scores, fused.List, fused.Count = 0, g.device(6*k*4), g.device(6*4)
			s.args.Scores = g.device(6 * 1001 * 4)
			arrived := g.zeroed(6 * 4)
			for range 3 { // the arrival counters must come back clean
				g.must(g.Launch(&SelectArgs{Scores: s.args, TopK: fused, Arrived: arrived}, 0))
			}
			if a, b := download[int32](g, top.Count, 6),
				download[int32](g, fused.Count, 6); !slices.Equal(a, b) {
				t.Errorf("counts %v and %v", a, b)
			}
			a, b := download[int32](g, top.List, 6*k), download[int32](g, fused.List, 6*k)
			if !slices.Equal(a, b) {
				t.Errorf("head %d: lists differ: %v and %v", dim, head(a), head(b))
			}
			if a[0] != 0 || a[1] != 1 || a[2] != 999 || a[3] != 1000 {
				t.Errorf("sinks and window of unit 0 are %v", head(a))
			}
		}
	})
}
