package reference

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func random(r *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	return x
}

// scattered returns a cache whose blocks are in random slots; the pool's unused slots hold NaN.
func scattered(r *rand.Rand, s Shape, tokens int, context ...int32) Cache {
	stride := 1
	for _, n := range context {
		stride = max(stride, (int(n)+tokens-1)/tokens)
	}
	c := Cache{BlockTokens: tokens, TableStride: stride, Context: context,
		Table: make([]int32, s.Units()*stride)}
	slots := r.Perm(2 * len(c.Table))
	size := 2 * tokens * s.Dim
	c.Pool = make([]float64, len(slots)*size)
	for i := range c.Pool {
		c.Pool[i] = math.NaN()
	}
	for i := range c.Table {
		c.Table[i] = int32(slots[i])
		copy(c.Pool[slots[i]*size:], random(r, size))
	}
	return c
}

func near(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		if math.Abs(got[i]-want[i]) <= 1e-9 || got[i] == want[i] {
			continue
		}
		t.Fatalf("%s: value %d is %g, want %g", what, i, got[i], want[i])
	}
}

func TestSoftmaxByHand(t *testing.T) {
	s := NewSoftmax(2)
	s.Add(math.Log(1), []float64{4, 0})
	s.Add(math.Log(3), []float64{0, 8})
	out := make([]float64, 2)
	lse := s.Result(out)
	near(t, "out", append(out, lse), []float64{1, 6, math.Log(4)})
}

func TestSoftmaxOfNothingIsZero(t *testing.T) {
	s, out := NewSoftmax(2), []float64{5, 5}
	if lse := s.Result(out); !math.IsInf(lse, -1) {
		t.Errorf("lse %g, want -inf", lse)
	}
	near(t, "out", out, []float64{0, 0})
}

func TestMergeEqualsOnePass(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	whole, a, b := NewSoftmax(3), NewSoftmax(3), NewSoftmax(3)
	for i := range 50 {
		score, value := 20*r.NormFloat64(), random(r, 3)
		whole.Add(score, value)
		if i%3 == 0 {
			a.Add(score, value)
		} else {
			b.Add(score, value)
		}
	}
	a.Merge(b)
	a.Merge(NewSoftmax(3))
	got, want := make([]float64, 3), make([]float64, 3)
	gotLSE, wantLSE := a.Result(got), whole.Result(want)
	near(t, "merged", append(got, gotLSE), append(want, wantLSE))
}

// Dense attention written out from its definition, without running softmax or paging.
func plain(d *Decode, head int) []float64 {
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
		s := Shape{Batch: 2, HeadsQ: 2 * group, HeadsKV: 2, Dim: 8}
		d := &Decode{Shape: s, Cache: scattered(r, s, 4, 1, 13), Q: random(r, s.Batch*s.HeadsQ*s.Dim),
			Scale: 0.3}
		out, _ := d.Run()
		for head := range s.Batch * s.HeadsQ {
			near(t, "out", out[head*s.Dim:][:s.Dim], plain(d, head))
		}
	}
}

func TestSparseWithAllBlocksIsDense(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	s := Shape{Batch: 2, HeadsQ: 8, HeadsKV: 2, Dim: 8}
	dense := &Decode{Shape: s, Cache: scattered(r, s, 4, 30, 17), Q: random(r, s.Batch*s.HeadsQ*s.Dim),
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
	near(t, "out", gotOut, wantOut)
	near(t, "lse", gotLSE, wantLSE)
	if margin := math.Abs(gotOut[0] - wantOut[1]); margin < 1e-6 {
		t.Error("neighbouring outputs are equal: the comparison proves nothing")
	}
}

func TestChunkedPrefillIsPlain(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	s := Shape{HeadsQ: 4, HeadsKV: 2, Dim: 8}
	const tokens = 23
	whole := Prefill{Shape: s, QTokens: tokens, Scale: 0.4, Q: random(r, tokens*s.HeadsQ*s.Dim),
		K: random(r, tokens*s.HeadsKV*s.Dim), V: random(r, tokens*s.HeadsKV*s.Dim)}
	want := whole.Run()
	var got []float64
	for first := 0; first < tokens; first += 7 {
		n := min(7, tokens-first)
		chunk := Prefill{Shape: s, QTokens: n, Prefix: first, Scale: 0.4,
			Q: whole.Q[first*s.HeadsQ*s.Dim:],
			K: whole.K[:(first+n)*s.HeadsKV*s.Dim], V: whole.V[:(first+n)*s.HeadsKV*s.Dim]}
		got = append(got, chunk.Run()...)
	}
	near(t, "out", got, want)
}

func TestLastPrefillRowIsDecode(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	s := Shape{Batch: 1, HeadsQ: 4, HeadsKV: 1, Dim: 8}
	const tokens = 9
	p := Prefill{Shape: s, QTokens: tokens, Scale: 0.4, Q: random(r, tokens*s.HeadsQ*s.Dim),
		K: random(r, tokens*s.Dim), V: random(r, tokens*s.Dim)}
	d := Decode{Shape: s, Q: p.Q[(tokens-1)*s.HeadsQ*s.Dim:], Scale: 0.4}
	d.BlockTokens, d.Table, d.TableStride, d.Context = tokens, []int32{0}, 1, []int32{tokens}
	d.Pool = append(append([]float64{}, p.K...), p.V...)
	want, _ := d.Run()
	got := make([]float64, s.HeadsQ*s.Dim)
	p.Row(tokens-1, got)
	near(t, "row", got, want)
}

func TestDigestByHand(t *testing.T) {
	hi, lo := Digest([]float64{0, 5, 1, 5, 2, 5, 9, 5}, 2)
	// Dimension 0: c = 4.5, r = (4.5 + 3.5 + 2.5 + 4.5) / 4 = 3.75. Dimension 1 is constant.
	near(t, "hi", hi, []float64{8.25, 5})
	near(t, "lo", lo, []float64{0.75, 5})
	near(t, "score", []float64{Score([]float64{1, -1, -2, 3}, hi, lo)},
		[]float64{((8.25 - 5) + (-1.5 + 15)) / 2})
}

func TestTopK(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		name            string
		scores          []float64
		k, sink, window int
		want            []int32
	}{
		{"plain", []float64{1, 5, 3}, 2, 0, 0, []int32{1, 2}},
		{"ties by index", []float64{2, 7, 2, 7, 2}, 4, 0, 0, []int32{1, 3, 0, 2}},
		{"sinks and window first", []float64{0, 9, inf, 8, 0}, 4, 1, 1, []int32{0, 4, 2, 1}},
		{"fewer than k", []float64{1, 2}, 5, 0, 0, []int32{1, 0}},
		{"none", nil, 3, 2, 2, []int32{}},
		{"-inf last", []float64{-inf, 1, -inf}, 3, 0, 0, []int32{1, 0, 2}},
	} {
		if got := TopK(c.scores, c.k, c.sink, c.window); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestRMSNormByHand(t *testing.T) {
	near(t, "norm", RMSNorm([]float64{3, -4, 0, 0}, []float64{1, 2, 3, 4}, 0, Exact),
		[]float64{1.2, -3.2, 0, 0})
	near(t, "eps", RMSNorm([]float64{1, 1}, []float64{1, 1}, 3, Exact), []float64{0.5, 0.5})
	thirds := func(x float64) float64 { return math.Round(3*x) / 3 }
	near(t, "rounded twice", RMSNorm([]float64{3, -4, 0, 0}, []float64{1, 2, 3, 4}, 0, thirds),
		[]float64{4. / 3, -10. / 3, 0, 0})
}

// Rotations keep lengths, and a product of q and k depends on the distance of their positions
// alone.
func TestRopeRotates(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	q, k, freq := random(r, 8), random(r, 8), []float64{1, 0.3, 0.1, 0.01}
	at := func(head []float64, position float64) []float64 {
		angle := make([]float64, len(freq))
		for d := range freq {
			angle[d] = position * freq[d]
		}
		return Rope(head, angle, Exact)
	}
	near(t, "unturned", at(q, 0), q)
	near(t, "quarter turn", Rope([]float64{1, 2}, []float64{math.Pi / 2}, Exact), []float64{-2, 1})
	near(t, "lengths", []float64{dot(at(q, 7), at(q, 7))}, []float64{dot(q, q)})
	near(t, "products", []float64{dot(at(q, 7), at(k, 3))}, []float64{dot(at(q, 104), at(k, 100))})
}

func TestSiluMulByHand(t *testing.T) {
	near(t, "silu", SiluMul([]float64{0, math.Log(3), -math.Log(3), 5, 2, 4}, Exact),
		[]float64{0, math.Log(3) * 0.75 * 2, -math.Log(3)})
	near(t, "rounded twice", SiluMul([]float64{10, 0.3}, math.Round), []float64{3})
}

func TestArgmax(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		x    []float64
		want int
	}{{[]float64{1, 3, 2, 3}, 1}, {[]float64{math.NaN(), -5}, 1}, {[]float64{-inf, -inf}, 0},
		{[]float64{2, inf, math.NaN(), inf}, 1}} {
		if got := Argmax(c.x); got != c.want {
			t.Errorf("%v: %d, want %d", c.x, got, c.want)
		}
	}
}
