package validate

import (
	"math"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/sim"
)

// Steps that stood still are those far above their like, whatever the model's error is, and what
// is left of TBT is that of their like.
func TestQuieted(t *testing.T) {
	mixed := decoding(1, 100, 10, 2)
	for i := range mixed {
		mixed[i].Mixed = true
	}
	for name, c := range map[string]struct {
		steps []Step
		stood int
	}{
		"quiet":               {decoding(1, 100, 1<<20, 1), 0},
		"one in fifty":        {decoding(1, 100, 50, 1.5), 2},
		"a little slower":     {decoding(1, 100, 10, 1.2), 0},
		"all slow":            {decoding(1, 100, 1, 3), 0}, // the model's error
		"prefills":            {mixed, 0},
		"too few of a kind":   {decoding(1, minAlike-1, 5, 3), 0},
		"each kind by itself": {append(decoding(1, 100, 50, 2), decoding(2, 100, 25, 2)...), 6},
	} {
		times, stood := quieted(c.steps)
		if stood != c.stood {
			t.Errorf("%s: %d stood still, want %d", name, stood, c.stood)
		}
		for i := range c.steps {
			want := c.steps[i].Live
			if c.stood > 0 && want > 1.25*1.03*c.steps[i].Model {
				want = 1.03 * c.steps[i].Model
			}
			if math.Abs(times[i]-want) > 1e-12 {
				t.Errorf("%s: step %d would take %v, want %v", name, i, times[i], want)
			}
		}
	}
}

func TestCompareQuiet(t *testing.T) {
	// two of 100 steps take 3 times as long: P99 is one of them, the mean 4 % too long
	steps := decoding(1, 100, 50, 3)
	live, simulated := sim.Summary{}, sim.Summary{}
	raw, quiet := make([]float64, 100), make([]float64, 100)
	for i := range steps {
		steps[i].Model = 0.01
		steps[i].Live = 0.01
		if i%50 == 0 {
			steps[i].Live = 0.03
		}
		raw[i], quiet[i] = steps[i].Live, 0.01
	}
	live.TBT.Mean, live.TBT.P99 = tokenTimes(steps, raw)
	simulated.TBT.Mean, simulated.TBT.P99 = tokenTimes(steps, quiet)
	if live.TBT.P99 != 0.03 || math.Abs(live.TBT.Mean-0.0104) > 1e-12 {
		t.Errorf("mean %v, P99 %v", live.TBT.Mean, live.TBT.P99)
	}
	r := ValidatedRun{Comparisons: slices.Concat(compareSummaries("run", &live, &simulated),
		compareQuiet("run", &live, &simulated, steps))}
	stood, _ := r.Of(stoodStillMetric)
	mean, _ := r.Of(quietMeanMetric)
	p99, _ := r.Of(quietP99Metric)
	if stood.Live != 2 || !slices.Equal(r.Misses(), []string{"tbt_p99_s"}) ||
		math.Abs(*mean.Error) > 1e-9 || *p99.Error != 0 {
		t.Errorf("%g steps stood still; misses %v, without those %+v, %+v", stood.Live, r.Misses(), mean,
			p99)
	}
	if compareQuiet("run", &live, &simulated, decoding(1, 100, 1<<20, 1)) != nil {
		t.Error("a machine that did not stand still has something to say")
	}
}
