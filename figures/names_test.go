package figures

import (
	"slices"
	"strings"
	"testing"
)

func sweepOf(settings ...map[string]any) []Run {
	var runs []Run
	for _, s := range settings {
		r := Run{System: "sparseserve", Model: "lwm-7b", GPU: "a100-40gb", Seed: 1, Rate: 0.1,
			Requests: 40, Completed: 40, Settings: s}
		if rate, ok := s["workload.rate"].(float64); ok {
			r.Rate = rate
		}
		runs = append(runs, r)
	}
	return runs
}

// The abscissa is what varies: the rate, else the setting with the most values.
func TestAbscissa(t *testing.T) {
	for name, c := range map[string]struct {
		runs   []Run
		label  string
		varies bool
	}{
		"rate": {sweepOf(map[string]any{"workload.rate": 0.1}, map[string]any{"workload.rate": 0.2}),
			"Req Rate (req/s)", true},
		"budget": {sweepOf(map[string]any{"system.budget_tokens": 512.0},
			map[string]any{"system.budget_tokens": 4096.0}), "Budget (tokens)", true},
		"kv": {sweepOf(map[string]any{"system.kv_gib": 4.0}, map[string]any{"system.kv_gib": 8.0}),
			"KV (GiB)", true},
		"text": {sweepOf(map[string]any{"system.prefill": "layer"},
			map[string]any{"system.prefill": "chunked"}), "Req Rate (req/s)", false},
		"nothing": {sweepOf(nil), "Req Rate (req/s)", false},
	} {
		if x := abscissaOf(c.runs); x.label != c.label || x.varies != c.varies {
			t.Errorf("%s: drawn against %q, varies %v", name, x.label, x.varies)
		}
	}
}

// Legends say what numbers are, and leave out what all runs share: that is in the caption.
func TestSeriesAreNamedByWhatDiffers(t *testing.T) {
	runs := sweepOf(
		map[string]any{"workload.rate": 0.1, "system.budget_tokens": 512.0, "system.batch_control": false,
			"system.window": 4.0},
		map[string]any{"workload.rate": 0.2, "system.budget_tokens": 1024.0, "system.batch_control": true,
			"system.window": 4.0})
	x := abscissaOf(runs)
	nameSeries(runs, x)
	for i, want := range []string{"no batch control, budget 512 tokens", "batch control, budget " +
		"1024 tokens"} {
		if runs[i].series != want {
			t.Errorf("series is %q, want %q", runs[i].series, want)
		}
	}
	want := "LWM-7B on A100-40GB, SparseServe, 40 requests, window 4, seed 1"
	if got := captionOf(runs, x); got != want {
		t.Errorf("caption is %q, want %q", got, want)
	}
}

// A sweep over cards has a panel a card, named, on one axis.
func TestPanelsNameTheCard(t *testing.T) {
	runs := sweepOf(map[string]any{"workload.rate": 0.1}, map[string]any{"workload.rate": 0.2},
		map[string]any{"workload.rate": 0.1}, map[string]any{"workload.rate": 0.2})
	for i := range runs {
		runs[i].TTFT.Mean = float64(1 + i)
		if i > 1 {
			runs[i].GPU = "h200"
		}
	}
	m := metrics()[0]
	pic := m.picture(panels(runs), abscissaOf(runs))
	var titles []string
	for _, c := range pic.charts {
		titles = append(titles, c.title)
	}
	if !slices.Equal(titles, []string{"(a) A100-40GB", "(b) H200"}) ||
		pic.charts[0].axis != pic.charts[1].axis {
		t.Errorf("panels are %q on %+v and %+v", titles, pic.charts[0].axis, pic.charts[1].axis)
	}
	if got := captionOf(runs, abscissaOf(runs)); !strings.HasPrefix(got,
		"LWM-7B on A100-40GB, H200, ") {
		t.Errorf("caption is %q", got)
	}
}
