package emulator

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/reference"
)

func TestDigest(t *testing.T) {
	g := newFixture(t, Config{})
	const dim, block, count = 64, 16, 5
	size := 2 * block * dim
	pool, poolF := g.normal(2*count*size, 2)
	slots, places := g.r.Perm(2 * count)[:count], g.r.Perm(2 * count)[:count]
	slot, dst := make([]int32, count), make([]int64, count)
	for i := range slot {
		slot[i], dst[i] = int32(slots[i]), int64(places[i])
	}
	args := &cuda.DigestArgs{Pool: upload(g, pool), Slot: upload(g, slot), Dst: upload(g, dst),
		Meta: g.device(2 * count * 2 * dim * 2), Count: count, HeadDim: dim, BlockTokens: block}
	g.must(g.Launch(args, 0))
	got := cuda.Floats(download[cuda.Half](g, args.Meta, 2*count*2*dim))
	written := 0
	for i := range slot {
		hi, lo := reference.Digest(poolF[slots[i]*size:][:block*dim], dim)
		g.near(fmt.Sprintf("digest %d", i), got[dst[i]*2*dim:][:2*dim], append(hi, lo...))
	}
	for _, x := range got {
		if !math.IsNaN(x) {
			written++
		}
	}
	if written != count*2*dim {
		t.Errorf("%d values written, want %d", written, count*2*dim)
	}
	args.Slot = upload(g, []int32{0, 1, 2, 3, 2 * count})
	faults(t, "slot outside the pool", g.Launch(args, 0), "Pool", "past the end")
	args.Slot, args.Dst = upload(g, slot), upload(g, []int64{0, 1, 2, 3, -1})
	faults(t, "place outside the metadata", g.Launch(args, 0), "Meta", "before the start")
}

// selection is a batch of queries and digests with the reference's scores.
func (g *fixture) selection(group, kvHeads, dim int, counts ...int) (args cuda.ScoresArgs,
	want [][]float64) {
	batch := len(counts) / kvHeads
	q, qf := g.normal(batch*group*kvHeads*dim, 1)
	var meta []cuda.Half
	var first []int64
	var count []int32
	for unit, n := range counts {
		first, count = append(first, int64(len(meta)/(2*dim))), append(count, int32(n))
		h, f := g.normal(n*2*dim, 1)
		meta = append(meta, h...)
		scores := make([]float64, n)
		for i := range n {
			scores[i] = reference.Score(qf[unit*group*dim:][:group*dim], f[i*2*dim:][:dim],
				f[(i*2+1)*dim:][:dim])
		}
		want = append(want, scores)
	}
	stride := slices.Max(counts) + 2
	return cuda.ScoresArgs{Q: upload(g, q), Meta: upload(g, meta), First: upload(g, first),
		Count: upload(g, count), Scores: g.device(len(counts) * stride * 4),
		Batch: int32(batch), HeadsQ: int32(group * kvHeads), HeadsKV: int32(kvHeads), HeadDim: int32(dim),
		ScoreStride: int32(stride), MaxBlocks: int32(stride - 2)}, want
}

func TestScores(t *testing.T) {
	g := newFixture(t, Config{})
	args, want := g.selection(4, 2, 64, 10, 33, 0, 7)
	g.must(g.Launch(&args, 0))
	got := download[float32](g, args.Scores, len(want)*int(args.ScoreStride))
	for unit, scores := range want {
		row := got[unit*int(args.ScoreStride):][:args.ScoreStride]
		for i, x := range row {
			if i < len(scores) && x != float32(scores[i]) {
				t.Fatalf("score %d of unit %d is %g, want %g", i, unit, x, scores[i])
			}
			if i >= len(scores) && math.Float32bits(x) != 0x7e7e7e7e {
				t.Fatalf("score %d of unit %d was written past its end", i, unit)
			}
		}
	}
	args.MaxBlocks = 32
	faults(t, "more digests than MaxBlocks", g.Launch(&args, 0), "Count", "MaxBlocks is 32")
}

func TestTopK(t *testing.T) {
	g := newFixture(t, Config{})
	for _, c := range []struct{ n, k, sink, window int }{{1, 1, 0, 0}, {100, 64, 2, 2}, {30, 64, 2, 2},
		{100, 0, 2, 2}, {100, 3, 2, 2}, {2, 4, 2, 2}} {
		const units = 3
		stride := c.n + 5
		scores, blocks := make([]float32, units*stride), make([]int32, units)
		for u := range units {
			blocks[u] = int32(max(0, c.n-u))
			for i := range stride {
				scores[u*stride+i] = float32(g.r.IntN(20)) // many are equal
				if i < c.sink || i >= int(blocks[u])-c.window {
					scores[u*stride+i] = float32(math.NaN()) // not to be read
				}
			}
		}
		args := &cuda.TopKArgs{Scores: upload(g, scores), Blocks: upload(g, blocks),
			List: g.device(units * (c.k + 1) * 4), Count: g.device(units * 4), Units: units,
			ScoreStride: int32(stride), ListStride: int32(c.k + 1), K: int32(c.k), Sink: int32(c.sink),
			Window: int32(c.window)}
		g.must(g.Launch(args, 0))
		list, count := download[int32](g, args.List, units*(c.k+1)), download[int32](g, args.Count, units)
		for u := range units {
			row := make([]float64, blocks[u])
			for i := range row {
				row[i] = float64(scores[u*stride+i])
			}
			want := reference.TopK(row, c.k, c.sink, c.window)
			if int(count[u]) != len(want) || !slices.Equal(list[u*(c.k+1):][:len(want)], want) {
				t.Fatalf("%+v, unit %d: %v; want %v", c, u, list[u*(c.k+1):][:count[u]], want)
			}
		}
	}
	nan := &cuda.TopKArgs{Scores: upload(g, []float32{1, float32(math.NaN())}),
		Blocks: upload(g, []int32{2}), List: g.device(16), Count: g.device(4), Units: 1, ScoreStride: 2,
		ListStride: 2, K: 1}
	faults(t, "NaN", g.Launch(nan, 0), "Scores", "score 1 of unit 0 is NaN")
	nan.ScoreStride = 1
	faults(t, "more blocks than scores", g.Launch(nan, 0), "Blocks", "2 blocks")
}

// Select is Scores, then TopK with -inf where there is no digest yet.
func TestSelect(t *testing.T) {
	g := newFixture(t, Config{})
	const k = 6
	args, want := g.selection(4, 2, 64, 10, 33, 0, 7)
	units := len(want)
	blocks := []int32{11, 33, 1, 5} // an open block; fewer blocks than digests
	top := cuda.TopKArgs{Blocks: upload(g, blocks), List: g.device(units * k * 4),
		Count: g.device(units * 4), Units: int32(units), ListStride: k, K: k, Sink: 1, Window: 1}
	arrived := g.zeroed(int64(units) * 4)
	for range 2 {
		g.must(g.Launch(&cuda.SelectArgs{Scores: args, TopK: top, Arrived: arrived}, 0))
	}
	list, count := download[int32](g, top.List, units*k), download[int32](g, top.Count, units)
	written := download[float32](g, args.Scores, units*int(args.ScoreStride))
	for u, n := range blocks {
		for i, x := range written[u*int(args.ScoreStride):][:args.ScoreStride] {
			if here := math.Float32bits(x) != 0x7e7e7e7e; here != (i < min(int(n), len(want[u]))) {
				t.Fatalf("score %d of unit %d: written %v", i, u, here)
			}
		}
		scores := slices.Repeat([]float64{math.Inf(-1)}, int(n))
		for i := range min(int(n), len(want[u])) {
			scores[i] = float64(float32(want[u][i]))
		}
		if chosen := reference.TopK(scores, k, 1, 1); !slices.Equal(list[u*k:][:count[u]], chosen) {
			t.Errorf("unit %d: %v, want %v", u, list[u*k:][:count[u]], chosen)
		}
	}
	faults(t, "arrived as allocated",
		g.Launch(&cuda.SelectArgs{Scores: args, TopK: top, Arrived: g.device(units * 4)}, 0), "Arrived",
		"not zero")
}
