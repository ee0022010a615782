package sim

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/sim/des"
)

// Means are exact; quantiles are those of the sorted durations within the
// histogram's three digits, rounded down to the microsecond.
func TestDistributionAgainstSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.SliceOfN(rapid.Int64Range(0, int64(2000*des.Second)), 1, 300).Draw(t, "times")
		d := newDistribution()
		var sum float64
		for _, x := range times {
			d.add(des.Time(x))
			sum += des.Time(x).Seconds()
		}
		slices.Sort(times)
		got := d.Stats()
		if want := sum / float64(len(times)); math.Abs(got.Mean-want) > 1e-9*(1+want) {
			t.Fatalf("mean %v, want %v", got.Mean, want)
		}
		for _, q := range []struct{ p, got float64 }{{0.5, got.P50}, {0.9, got.P90}, {0.99, got.P99}} {
			i := min(len(times)-1, int(math.Ceil(q.p*float64(len(times))))-1)
			low, high := des.Time(times[max(0, i-1)]).Seconds(),
				des.Time(times[min(len(times)-1, i+1)]).Seconds()
			if q.got < low*0.999-2e-6 || q.got > high*1.001+2e-6 {
				t.Fatalf("P%g is %v, want it between %v and %v", 100*q.p, q.got, low, high)
			}
		}
	})
}

func TestWarnings(t *testing.T) {
	m := NewMetrics()
	for i := range 400 {
		m.scheduled(des.Time(i) * des.Second)
	}
	m.sampled, m.groups, m.loadError, m.done = 32, 1024, 0.0123, 199
	w := m.Summary().Warnings
	want := []string{
		"unstable queue: scheduling delay keeps growing (last quarter of requests waits 3.49x as long " +
			"as the first half); means depend on the length of the run",
		"heads sampled: 32 of 1024 (layer, KV head) groups; blocks loaded have a standard error of 1.2 %",
		"only 199 requests finished; figures from fewer than 200 are noisy",
	}
	if !slices.Equal(w, want) {
		t.Errorf("warnings are %q", w)
	}
	m = NewMetrics()
	m.submitted, m.done = 300, 297
	m.rejected("prompt of 5 tokens exceeds the maximum of 4")
	m.truncated(9, 4)
	if w := m.Summary().Warnings; !slices.Equal(w, []string{
		"1 of 300 requests rejected: prompt of 5 tokens exceeds the maximum of 4",
		"1 of 300 prompts truncated to 4 tokens (longest 9)"}) {
		t.Errorf("warnings are %q", w)
	}
	m.rejected("another")
	m.truncated(8, 3)
	if w := m.Summary().Warnings; m.Summary().Truncated != 2 || !slices.Equal(w, []string{
		"2 of 300 requests rejected: the first, prompt of 5 tokens exceeds the maximum of 4",
		"2 of 300 prompts truncated to between 3 and 4 tokens (longest 9)"}) {
		t.Errorf("warnings are %q", w)
	}
	if m := NewMetrics(); len(m.Summary().Warnings) != 1 {
		t.Errorf("warnings of nothing: %q", m.Summary().Warnings)
	}
}
