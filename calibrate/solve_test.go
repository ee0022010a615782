package calibrate

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// transfers are points with times that f gives.
func transfers(f func(n, b float64) float64) data {
	var d data
	for _, b := range []int64{1024, 4096, 65536} {
		for _, n := range []int64{1, 16, 256, 4096} {
			d = append(d, observation{Point: point(probeSaveGPU, "", b, n, basePool),
				seconds: f(float64(n), float64(b))})
		}
	}
	return d
}

func blocks(at observation) float64 { return float64(at.At("blocks")) }

// Both solvers find the parameters of exact times, zeros included.
func TestSolversRecoverParameters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		launch := rapid.Float64Range(1e-6, 1e-4).Draw(t, "launch")
		block := rapid.SampledFrom([]float64{0, 1e-9, 1e-6}).Draw(t, "block")
		rate := rapid.Float64Range(1e9, 1e11).Draw(t, "rate")
		d := transfers(func(n, b float64) float64 { return launch + n*block + n*b/rate })
		got := linear(d, one, blocks, moved)
		for i, want := range []float64{launch, block, 1 / rate} {
			if math.Abs(got[i]-want) > 1e-6*want+1e-15 {
				t.Fatalf("parameter %d: %g, want %g", i, got[i], want)
			}
		}
		k := refine(d, []float64{1e-5, 1e-8, 1e10}, []bound{callBound, blockBound, rateBound},
			func(p []float64, at observation) float64 {
				return p[0] + p[1]*blocks(at) + moved(at)/p[2]
			})
		for _, at := range d {
			if fit := k[0] + k[1]*blocks(at) + moved(at)/k[2]; math.Abs(fit/at.seconds-1) > 0.01 {
				t.Fatalf("%s: fitted %g, is %g", at.Key(), fit, at.seconds)
			}
		}
	})
}

// No parameter of linear is negative, whatever the times.
func TestLinearIsNotNegative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := transfers(func(_, _ float64) float64 {
			return rapid.Float64Range(1e-6, 1).Draw(t, "seconds")
		})
		any := 0.0
		for _, p := range linear(d, one, blocks, moved) {
			if p < 0 || math.IsNaN(p) {
				t.Fatalf("a parameter of %g", p)
			}
			any += p
		}
		if any == 0 {
			t.Fatal("all parameters are zero")
		}
	})
}

// rising changes nothing that rises, always rises, and stays within its input.
func TestRising(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOfN(rapid.Float64Range(1e-6, 1), 1, 30).Draw(t, "values")
		weights := rapid.SliceOfN(rapid.Float64Range(0.1, 10), len(in), len(in)).Draw(t, "weights")
		out := rising(in, weights)
		if len(out) != len(in) || !slices.IsSorted(out) {
			t.Fatalf("%v of %v", out, in)
		}
		if out[0] < slices.Min(in)*(1-1e-9) || out[len(out)-1] > slices.Max(in)*(1+1e-9) {
			t.Fatalf("%v leaves the range of %v", out, in)
		}
		again := rising(out, weights)
		for i := range out {
			if math.Abs(again[i]/out[i]-1) > 1e-9 {
				t.Fatalf("%v changes what rises, %v", again, out)
			}
		}
	})
}

// The interval of the median holds the true median 95 times in 100, here of a
// lopsided distribution.
func TestMedianInterval(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 1))
	const rounds = 2000
	held := 0
	for range rounds {
		m := medianOf(filled(25, func(int) float64 { return math.Exp(r.NormFloat64()) }))
		if m.Low > m.Value || m.Value > m.High {
			t.Fatalf("%+v", m)
		}
		if m.Low <= 1 && 1 <= m.High {
			held++
		}
	}
	if share := float64(held) / rounds; share < 0.945 || share > 0.985 {
		t.Errorf("the interval holds the median in %.1f %%", 100*share)
	}
}
