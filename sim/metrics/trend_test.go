package metrics

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/internal/warn"
)

// delays is the waiting times of a queue with one server: service takes a
// second, requests come at random (M/D/1, Lindley's recursion).
func delays(load float64, n int, seed uint64) []float64 {
	rng := rand.New(rand.NewPCG(seed, 1))
	w := make([]float64, n)
	for i := 1; i < n; i++ {
		w[i] = max(0, w[i-1]+1-rng.ExpFloat64()/load)
	}
	return w
}

func rising(values []float64) bool {
	var t trend
	for _, v := range values {
		t.add(v)
	}
	return t.rising(1)
}

// A queue with a load below one is stable and said to be; one above is not.
// Near one a finite run cannot tell: the rate of error is held for loads apart
// from it, over many seeds.
func TestTrendTellsUnstableQueues(t *testing.T) {
	const seeds = 300
	for _, c := range []struct {
		load   float64
		n      int
		lo, hi float64 // share of runs in which it rises
	}{
		{0.3, 300, 0, 0}, {0.3, 5000, 0, 0},
		{0.7, 300, 0, 0.1}, {0.7, 5000, 0, 0.02},
		{1.3, 300, 0.97, 1}, {1.3, 5000, 1, 1},
		{2, 100, 0.99, 1}, {2, 300, 1, 1}, {2, 5000, 1, 1},
	} {
		found := 0
		for seed := range uint64(seeds) {
			if rising(delays(c.load, c.n, seed)) {
				found++
			}
		}
		t.Logf("load %g, %d requests: rises in %d of %d", c.load, c.n, found, seeds)
		if share := float64(found) / seeds; share < c.lo || share > c.hi {
			t.Errorf("load %g, %d requests: rises in %.3g of all runs, want %g to %g", c.load, c.n, share,
				c.lo, c.hi)
		}
	}
}

func TestTrendEdges(t *testing.T) {
	line := func(n int, f func(i int) float64) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = f(i)
		}
		return out
	}
	for name, c := range map[string]struct {
		values []float64
		want   bool
	}{
		"nothing":         {nil, false},
		"too few":         {line(7, func(i int) float64 { return float64(i) * 10 }), false},
		"just enough":     {line(8, func(i int) float64 { return float64(i) * 10 }), true},
		"constant":        {line(1000, func(int) float64 { return 50 }), false},
		"zero":            {line(1000, func(int) float64 { return 0 }), false},
		"falls":           {line(1000, func(i int) float64 { return float64(1000 - i) }), false},
		"grows":           {line(1000, func(i int) float64 { return float64(i) }), true},
		"grows from idle": {line(1000, func(i int) float64 { return max(0, float64(i-500)) }), true},
		"within a second": {line(1000, func(i int) float64 { return float64(i) / 1001 }), false},
		"settles at a level": {
			line(1000, func(i int) float64 { return 20 * (1 - math.Exp(-float64(i)/50)) }), false},
		"one late burst": {line(1000, func(i int) float64 { return float64(max(0, 20-abs(i-980))) }),
			false},
	} {
		if got := rising(c.values); got != c.want {
			t.Errorf("%s: rising is %v, want %v", name, got, c.want)
		}
	}
}

func abs(i int) int { return max(i, -i) }

// The batch means are means of equal runs of the sequence, in order, with less
// than a batch left over, in constant memory.
func TestTrendKeepsBatchMeans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(0, 100), 0, 700).Draw(t, "values")
		var tr trend
		for _, v := range values {
			tr.add(v)
		}
		if len(tr.means) >= trendBatches {
			t.Fatalf("%d batches kept", len(tr.means))
		}
		if kept := len(tr.means)*tr.size + tr.n; kept != len(values) {
			t.Fatalf("%d batches of %d and %d over of %d values", len(tr.means), tr.size, tr.n, len(values))
		}
		for i, m := range tr.means {
			if want := mean(values[i*tr.size : (i+1)*tr.size]); math.Abs(m-want) > 1e-9 {
				t.Fatalf("batch %d has mean %v, want %v", i, m, want)
			}
		}
	})
}

// A queue is called unstable by its waits and the number of its requests: of n requests the i-th
// waits step times i seconds, so that the last quarter waits 7/8 n step in the mean.
func TestUnstableNeedsRequestsAndWaits(t *testing.T) {
	for name, c := range map[string]struct {
		n             int
		step, matters float64
		kind          warn.Kind
	}{
		"long and late":            {400, 0.01, 2, warn.UnstableQueue}, // 3.5 s
		"long, within the level":   {400, 0.005, 2, ""},                // 1.7 s
		"the same, no level":       {400, 0.005, 1, warn.UnstableQueue},
		"just enough":              {200, 1, 2, warn.UnstableQueue},
		"too few":                  {199, 1, 2, warn.WaitsGrow},
		"few and within the level": {40, 0.05, 2, ""}, // 1.7 s
		"none waits at first":      {40, 0.1, 2, warn.WaitsGrow},
	} {
		var tr trend
		for i := range c.n {
			tr.add(c.step * float64(i))
		}
		if got, _ := tr.warning(c.matters); got.Kind != c.kind {
			t.Errorf("%s: %q, want %q", name, got, c.kind)
		}
	}
}
