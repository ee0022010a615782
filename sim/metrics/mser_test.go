package metrics

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/sim/des"
)

// MSER-5 against its definition, every truncation point tried.
func TestMSER5AgainstItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Float64Range(0, 100), 0, 200).Draw(t, "x")
		var y []float64
		for i := 0; i+5 <= len(x); i += 5 {
			y = append(y, (x[i]+x[i+1]+x[i+2]+x[i+3]+x[i+4])/5)
		}
		error2 := func(d int) float64 {
			centre, sum := mean(y[d:]), 0.0
			for _, v := range y[d:] {
				sum += (v - centre) * (v - centre)
			}
			return sum / float64(len(y)-d) / float64(len(y)-d)
		}
		got, settled := mser5(x)
		if len(y) < 2 {
			if got != 0 || settled {
				t.Fatalf("%d values: cut %d", len(x), got)
			}
			return
		}
		if got%5 != 0 || got/5 > len(y)/2 || settled != (got/5 < len(y)/2) {
			t.Fatalf("cut %d of %d, settled %v", got, len(x), settled)
		}
		for d := range len(y)/2 + 1 {
			if error2(d) < error2(got/5)-1e-9*(1+error2(got/5)) {
				t.Fatalf("cut at batch %d of %d: squared error %g, at %d %g", got/5, len(y), error2(got/5),
					d, error2(d))
			}
		}
	})
}

// noise returns a uniform value in [-1, 1].
func noise(seed, i int) float64 {
	return 2*float64(des.Hash(uint64(seed*1_000_003+i))>>11)/(1<<53) - 1
}

// A planted transient is cut: at least all of its whole batches. Little of what is stationary
// goes with it.
func TestMSER5CutsTransients(t *testing.T) {
	const n = 600
	for _, planted := range []int{0, 7, 40, 150, 200} {
		beyond := 0
		for seed := range 100 {
			x := make([]float64, n)
			for i := range x {
				if x[i] = 10 + noise(seed, i); i < planted {
					x[i] += 10 - 8*float64(i)/float64(planted) // decays, and ends with a step
				}
			}
			cut, settled := mser5(x)
			if cut < planted/5*5 || !settled {
				t.Fatalf("seed %d: a transient of %d values: %d cut, settled %v", seed, planted, cut, settled)
			}
			beyond += cut - planted
		}
		if share := float64(beyond) / 100 / float64(n-planted); share > 0.05 {
			t.Errorf("transient of %d values: %.1f %% of the stationary ones are cut too",
				planted, 100*share)
		} else {
			t.Logf("transient of %d values: %.1f %% of the stationary ones are cut too", planted,
				100*math.Max(0, share))
		}
	}
	rising := make([]float64, n)
	for i := range rising {
		rising[i] = float64(i)
	}
	if _, settled := mser5(rising); settled {
		t.Error("a series without end of its rise is steady")
	}
}
