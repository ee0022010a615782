package weights

import (
	"math"
	"testing"
)

func TestInvFreq(t *testing.T) {
	for _, c := range []struct {
		rope Rope
		dim  int
		want []float64
	}{
		{Rope{Theta: 10000}, 8, []float64{1, 0.1, 0.01, 0.001}},
		{Rope{Theta: 500000}, 4, []float64{1, 1 / math.Sqrt(500000)}},
		{Rope{Theta: 10000, Scaling: LinearScaling, Factor: 4}, 8,
			[]float64{0.25, 0.025, 0.0025, 0.00025}},
		// Wavelengths 2 pi, 62.8, 628, 6283 of a context of 1024: below 1024 / 4 kept, above 1024 /
		// 1 divided by 8. In between: 1024 / 628.3 = 1.6297 periods, so 0.2099 of the way from 1 to
		// 4.
		{Rope{Theta: 10000, Scaling: Llama3Scaling, Factor: 8, LowFactor: 1, HighFactor: 4,
			OriginalContext: 1024}, 8,
			[]float64{1, 0.1, 0.01 * (0.2099155 + (1-0.2099155)/8), 0.001 / 8}},
	} {
		got := c.rope.InvFreq(c.dim)
		if len(got) != len(c.want) {
			t.Fatalf("%+v: %d frequencies, want %d", c.rope, len(got), len(c.want))
		}
		for i, want := range c.want {
			if math.Abs(float64(got[i])-want) > 2e-7*want {
				t.Errorf("%+v: frequency %d is %g, want %g", c.rope, i, got[i], want)
			}
		}
	}
}

// Llama3's border is soft: its frequencies are continuous and keep their order.
func TestLlama3ScalingIsContinuous(t *testing.T) {
	r := Rope{Theta: 500000, Scaling: Llama3Scaling, Factor: 8, LowFactor: 1, HighFactor: 4,
		OriginalContext: 8192}
	plain, scaled := Rope{Theta: 500000}.InvFreq(4096), r.InvFreq(4096)
	for i := range scaled {
		ratio := float64(plain[i] / scaled[i])
		if ratio < 1-1e-6 || ratio > 8+1e-5 {
			t.Fatalf("frequency %d is divided by %g", i, ratio)
		}
		if i > 0 {
			if before := float64(plain[i-1] / scaled[i-1]); ratio < before-1e-5 || ratio > before*1.05 {
				t.Fatalf("frequency %d is divided by %g, the one before by %g", i, ratio, before)
			}
		}
	}
	if plain[0] != scaled[0] || plain[2047] != 8*scaled[2047] {
		t.Errorf("ends: %g to %g, %g to %g", plain[0], scaled[0], plain[2047], scaled[2047])
	}
}
