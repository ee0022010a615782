package emulator

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda/reference"
)

func randoms(r *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	return x
}

func nearly(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		if !(math.Abs(got[i]-want[i]) <= 1e-9) && got[i] != want[i] {
			t.Fatalf("%s: value %d is %g, want %g", what, i, got[i], want[i])
		}
	}
}

// scattered returns a cache whose blocks are in random slots; the pool's unused slots hold NaN.
func scattered(r *rand.Rand, s reference.Shape, tokens int, context ...int32) pagedCache {
	stride := 1
	for _, n := range context {
		stride = max(stride, (int(n)+tokens-1)/tokens)
	}
	c := pagedCache{BlockTokens: tokens, TableStride: stride, Context: context,
		Table: make([]int32, s.Units()*stride)}
	slots := r.Perm(2 * len(c.Table))
	size := 2 * tokens * s.Dim
	c.Pool = make([]float64, len(slots)*size)
	for i := range c.Pool {
		c.Pool[i] = math.NaN()
	}
	for i := range c.Table {
		c.Table[i] = int32(slots[i])
		copy(c.Pool[slots[i]*size:], randoms(r, size))
	}
	return c
}

// Dense attention written out from its definition, without running softmax or paging.
func plain(d *naiveDecode, head int) []float64 {
	unit := head / d.Group()
	var scores []float64
	var values [][]float64
	total := 0.0
	for t := range int(d.Context[unit/d.HeadsKV]) {
		at := (int(d.Table[unit*d.TableStride+t/d.BlockTokens])*2*d.BlockTokens + t%d.BlockTokens) * d.Dim
		e := math.Exp(d.Scale * dot(d.Q[head*d.Dim:][:d.Dim], d.Pool[at:]))
		scores, values, total = append(scores, e),
			append(values, d.Pool[at+d.BlockTokens*d.Dim:][:d.Dim]), total+e
	}
	out := make([]float64, d.Dim)
	for t, e := range scores {
		for i := range out {
			out[i] += e / total * values[t][i]
		}
	}
	return out
}

func TestDenseDecodeIsItsDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for _, group := range []int{1, 4, 8} {
		s := reference.Shape{Batch: 2, HeadsQ: 2 * group, HeadsKV: 2, Dim: 8}
		d := &naiveDecode{Shape: s, pagedCache: scattered(r, s, 4, 1, 13),
			Q:     randoms(r, s.Batch*s.HeadsQ*s.Dim),
			Scale: 0.3}
		out, _ := d.Run()
		for head := range s.Batch * s.HeadsQ {
			nearly(t, "out", out[head*s.Dim:][:s.Dim], plain(d, head))
		}
	}
}

func TestSparseWithAllBlocksIsDense(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	s := reference.Shape{Batch: 2, HeadsQ: 8, HeadsKV: 2, Dim: 8}
	dense := &naiveDecode{Shape: s, pagedCache: scattered(r, s, 4, 30, 17),
		Q:     randoms(r, s.Batch*s.HeadsQ*s.Dim),
		Scale: 0.3}
	sparse := *dense
	sparse.ListStride = sparse.TableStride
	for unit := range s.Units() {
		order := r.Perm(dense.Blocks(unit / s.HeadsKV))
		row := make([]int32, sparse.ListStride)
		for i, block := range order {
			row[i] = int32(block)
		}
		sparse.List, sparse.Count = append(sparse.List, row...), append(sparse.Count, int32(len(order)))
	}
	wantOut, wantLSE := dense.Run()
	gotOut, gotLSE := sparse.Run()
	nearly(t, "out", gotOut, wantOut)
	nearly(t, "lse", gotLSE, wantLSE)
	if margin := math.Abs(gotOut[0] - wantOut[1]); margin < 1e-6 {
		t.Error("neighbouring outputs are equal: the comparison proves nothing")
	}
}

func TestLastPrefillRowIsDecode(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	s := reference.Shape{Batch: 1, HeadsQ: 4, HeadsKV: 1, Dim: 8}
	const tokens = 9
	p := reference.Prefill{Shape: s, QTokens: tokens, Scale: 0.4, Q: randoms(r, tokens*s.HeadsQ*s.Dim),
		K: randoms(r, tokens*s.Dim), V: randoms(r, tokens*s.Dim)}
	d := naiveDecode{Shape: s, Q: p.Q[(tokens-1)*s.HeadsQ*s.Dim:], Scale: 0.4}
	d.BlockTokens, d.Table, d.TableStride, d.Context = tokens, []int32{0}, 1, []int32{tokens}
	d.Pool = append(append([]float64{}, p.K...), p.V...)
	want, _ := d.Run()
	got := make([]float64, s.HeadsQ*s.Dim)
	p.Row(tokens-1, got)
	nearly(t, "row", got, want)
}

func newPSA(r *rand.Rand, epsilon float64, micro int) *naivePSA {
	s := reference.Shape{Batch: 2, HeadsQ: 8, HeadsKV: 2, Dim: 8}
	p := &naivePSA{Shape: s, pagedCache: scattered(r, s, 4, 61, 33),
		Q:     randoms(r, s.Batch*s.HeadsQ*s.Dim),
		Scale: 0.5, Epsilon: epsilon, Micro: micro}
	p.OrderStride = p.TableStride
	for unit := range s.Units() {
		row := make([]int32, p.OrderStride)
		for i := range row {
			row[i] = int32(i)
		}
		p.Order, p.Count = append(p.Order, row...), append(p.Count, int32(p.Blocks(unit/s.HeadsKV)))
	}
	return p
}

func TestPSAWithFullThresholdIsDense(t *testing.T) {
	p := newPSA(rand.New(rand.NewPCG(4, 4)), 1, 3)
	dense := naiveDecode{Shape: p.Shape, pagedCache: p.pagedCache, Q: p.Q, Scale: p.Scale}
	want, _ := dense.Run()
	r := p.Run()
	nearly(t, "out", r.Out, want)
	if !slices.Equal(r.Used, p.Count) {
		t.Errorf("used %v of %v", r.Used, p.Count)
	}
}

func TestPSAStopsBetweenAndAttendsToAPrefix(t *testing.T) {
	p := newPSA(rand.New(rand.NewPCG(5, 5)), 0.7, 2)
	r := p.Run()
	stopped := false
	for u, used := range r.Used {
		stopped = stopped || used < p.Count[u]
		if used%2 != 0 && used != p.Count[u] {
			t.Errorf("unit %d used %d blocks: not whole microbatches", u, used)
		}
	}
	if !stopped {
		t.Fatal("no unit stopped early: the case proves nothing")
	}
	prefix := naiveDecode{Shape: p.Shape, pagedCache: p.pagedCache, Q: p.Q, Scale: p.Scale,
		List:       p.Order,
		ListStride: p.OrderStride, Count: r.Used}
	want, _ := prefix.Run()
	nearly(t, "out", r.Out, want)
}

// The paper's Figure 4: block weights and microbatches of four; the weight passes 0.91 with the
// second microbatch and 0.95 with the third.
func TestPSAFigure4(t *testing.T) {
	weights := []float64{98, 84, 68, 55, 31, 22, 15, 10, 8.2, 6.1, 4.9, 4.3, 3, 2, 1, 0.5}
	for _, c := range []struct {
		epsilon float64
		used    int32
	}{{0.3, 4}, {0.8, 8}, {0.9, 12}, {0.999, 16}} {
		p := naivePSA{Shape: reference.Shape{Batch: 1, HeadsQ: 1, HeadsKV: 1, Dim: 1}, Micro: 4,
			Scale: 1, Epsilon: c.epsilon,
			Q:           []float64{1},
			OrderStride: len(weights), Count: []int32{int32(len(weights))}}
		p.BlockTokens, p.TableStride, p.Context = 1, len(weights), []int32{int32(len(weights))}
		for i, w := range weights {
			p.Order, p.Table = append(p.Order, int32(i)), append(p.Table, int32(i))
			p.Pool = append(p.Pool, math.Log(w), 1)
		}
		if r := p.Run(); r.Used[0] != c.used {
			t.Errorf("epsilon %g: %d blocks, want %d", c.epsilon, r.Used[0], c.used)
		}
	}
}
