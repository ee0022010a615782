package metrics

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim/des"
)

// Mean and percentiles are taken over the whole sorted series: percentile p is at rank p/100 (n-1),
// linear between neighbours, as NumPy and vLLM's benchmark have it.
func TestDistributionAgainstSort(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for name, draw := range map[string]func(i int) des.Time{
		"uniform": func(int) des.Time { return des.Time(r.Int64N(int64(2000 * des.Second))) },
		"skewed": func(int) des.Time {
			return des.Time(float64(30*des.Millisecond) * math.Exp(r.NormFloat64()))
		},
		"stalls in one of thirty": func(i int) des.Time {
			if i%30 == 0 {
				return des.Second + des.Time(i)
			}
			return 20*des.Millisecond + des.Time(i)
		},
		"rising": func(i int) des.Time { return des.Time(i) * des.Microsecond },
	} {
		for _, n := range []int{1, 2, 10_007, 20_000} {
			var d Distribution
			var all []float64
			sum := 0.0
			for i := range n {
				x := draw(i)
				d.add(x)
				all = append(all, float64(x))
				sum += float64(x)
			}
			slices.Sort(all)
			at := func(p float64) float64 {
				low, share := math.Modf(p * float64(n-1))
				return all[int(low)]*(1-share) + all[min(int(low)+1, n-1)]*share
			}
			got := d.Stats()
			for _, s := range []struct {
				name      string
				got, want float64
			}{{"mean", got.Mean, sum / float64(n)}, {"P50", got.P50, at(0.5)}, {"P90", got.P90, at(0.9)},
				{"P95", got.P95, at(0.95)}, {"P99", got.P99, at(0.99)}} {
				if want := s.want / 1e9; math.Abs(s.got-want) > 1e-11*want {
					t.Errorf("%s, %d samples: %s is %v, want %v", name, n, s.name, s.got, want)
				}
			}
		}
	}
}

func TestWarnings(t *testing.T) {
	m := New(About{Replicas: 1})
	for i := range 400 {
		m.Schedule(&Life{}, des.Time(i)*des.Second)
	}
	m.sampled, m.groups, m.loadError, m.done = 32, 1024, 0.0123, 199
	w := warn.Texts(m.Summary().Warnings)
	want := []string{
		"unstable queue: the last quarter of requests waits 348 s for its first step, the first half " +
			"99.5 s; means depend on the length of the run",
		"heads sampled: 32 of 1024 (layer, KV head) groups; blocks loaded have a standard error of 1.2 %",
		"only 199 requests finished; figures from fewer than 200 are noisy",
	}
	if !slices.Equal(w, want) {
		t.Errorf("warnings are %q", w)
	}
	m = New(About{Replicas: 1})
	m.submitted, m.done = 300, 297
	m.Reject(&Life{Request: Request{Rejected: "prompt of 5 tokens exceeds the maximum of 4"}})
	m.Truncate(9, 4)
	if w := warn.Texts(m.Summary().Warnings); !slices.Equal(w, []string{
		"1 of 300 requests rejected: prompt of 5 tokens exceeds the maximum of 4",
		"1 of 300 prompts truncated to 4 tokens (longest 9)"}) {
		t.Errorf("warnings are %q", w)
	}
	m.Reject(&Life{Request: Request{Rejected: "another"}})
	m.Truncate(8, 3)
	if w := warn.Texts(m.Summary().Warnings); m.Summary().Truncated != 2 || !slices.Equal(w, []string{
		"2 of 300 requests rejected: the first, prompt of 5 tokens exceeds the maximum of 4",
		"2 of 300 prompts truncated to between 3 and 4 tokens (longest 9)"}) {
		t.Errorf("warnings are %q", w)
	}
	if m := New(About{Replicas: 1}); len(m.Summary().Warnings) != 1 {
		t.Errorf("warnings of nothing: %q", m.Summary().Warnings)
	}
}
