package traces

import (
	"math"
	"testing"
)

// A workload is described as it is served: scaled lengths, drawn times.
func TestDescribeWorkload(t *testing.T) {
	s := DefaultSpec()
	s.Trace, s.PromptLengths, s.OutputLengths = Synthetic, "lognormal(8192, 0.5)", "fixed(200)"
	s.OutputScale, s.Arrivals, s.Burstiness, s.Rate, s.Requests = 2, ArrivalsGamma, 2, 5, 20_000
	d, err := DescribeWorkload(t.Context(), "w", s, 1, KV{})
	if err != nil {
		t.Fatal(err)
	}
	if d.Path != "w" || d.Requests != s.Requests || d.Output.Min != 400 || d.Output.Max != 400 {
		t.Errorf("%+v", d)
	}
	for _, v := range []struct {
		name           string
		got, want, off float64
	}{
		{"rate", d.Rate, 5, 0.3}, {"burstiness", d.GapCV, 2, 0.2},
		{"median", d.Prompt.P50, 8192, 200}, {"P95", d.Prompt.P95, 8192 * math.Exp(0.5*1.645), 600},
	} {
		if math.Abs(v.got-v.want) > v.off {
			t.Errorf("%s %g, want %g within %g", v.name, v.got, v.want, v.off)
		}
	}
	s.Arrivals, s.Rate, s.Concurrency, s.ThinkS = ArrivalsClosed, 0, 3, 1.5
	d, err = DescribeWorkload(t.Context(), "w", s, 1, KV{})
	if err != nil || d.Gap != nil || d.Rate != 0 {
		t.Errorf("a closed loop has times of its own: %+v, %v", d, err)
	}
	s.OutputLengths = ""
	if _, err = DescribeWorkload(t.Context(), "w", s, 1, KV{}); err == nil {
		t.Error("no error of a workload that cannot be opened")
	}
}
