package metrics

import (
	"math"
	"testing"
)

// Of 100 blocks selected 40 are loaded: 10 again, for a prefill that continues, and 5 ahead of
// rounds that may not come. So 25 miss.
func TestHitsLeaveOutWhatNoDecodeMissed(t *testing.T) {
	m := New(About{Replicas: 1, Offload: true, BlockBytes: 8})
	m.Step(&Step{Selected: 60, Loaded: 30, Resumed: 10, Saved: 3})
	m.Step(&Step{Selected: 40, Loaded: 10, Ahead: 5, Saved: 4})
	s := m.Summary()
	if s.HitRatio != 0.75 || s.BlocksLoadedPerStep != 20 || s.H2DBytes != 320 || s.D2HBytes != 56 {
		t.Errorf("hits %g, %g loads a step, %d bytes loaded, %d saved; want 0.75, 20, 320 and 56",
			s.HitRatio, s.BlocksLoadedPerStep, s.H2DBytes, s.D2HBytes)
	}
}

// Of eight values 28 pairs may rise. Mann-Kendall's statistic has a standard deviation of
// sqrt(8 x 7 x 21 / 18) = 8.08: with one pair that falls it is 26, 3.22 of these, above the 3.1 of
// 99.9 %; with two it is 24, 2.97 of these, below.
func TestTrendAtItsBound(t *testing.T) {
	if z := 26 / math.Sqrt(8*7*21/18.); z < 3.2 || z > 3.3 {
		t.Fatal(z)
	}
	one := []float64{0, 20, 10, 30, 40, 50, 60, 70}
	two := []float64{0, 20, 10, 30, 50, 40, 60, 70}
	if !rising(one) || rising(two) {
		t.Errorf("with a pair that falls it rises: %v; with two: %v", rising(one), rising(two))
	}
}
