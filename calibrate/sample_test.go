package calibrate

import (
	"context"
	"testing"
	"time"
)

// Sampling ends at the stated confidence, or at a cap.
func TestSamplingRule(t *testing.T) {
	steady := func(_, n int) ([]float64, error) {
		return filled(n, func(int) float64 { return 1 }),
			nil
	}
	wild := func(_, n int) ([]float64, error) {
		return filled(n, func(i int) float64 { return float64(1 + i%2*9) }), nil
	}
	slow := func(w, n int) ([]float64, error) {
		time.Sleep(time.Duration(w+n) * 20 * time.Millisecond)
		return filled(n, func(int) float64 { return 0.02 }), nil
	}
	rule := Rule{Spread: 0.02, Warmup: 2, Least: 9, Most: 50, Time: 100 * time.Millisecond}
	for _, c := range []struct {
		name      string
		timed     Timed
		low, high int
	}{{"steady", steady, 9, 9}, {"wild", wild, 50, 50}, {"slow", slow, 3, 4}} {
		got, err := rule.sample(context.Background(), c.timed)
		if err != nil || len(got) < c.low || len(got) > c.high {
			t.Errorf("%s: %d samples, %v, want %d to %d", c.name, len(got), err, c.low, c.high)
		}
	}
	zero := func(_, n int) ([]float64, error) { return make([]float64, n), nil }
	if _, err := rule.sample(context.Background(), zero); err == nil {
		t.Error("a sample of no time passes")
	}
}

func filled(n int, f func(int) float64) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = f(i)
	}
	return x
}
