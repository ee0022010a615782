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
