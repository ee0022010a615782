package answers

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/validate"
	"github.com/sparseserve/sparseserve/figures"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/traces/records"
)

func TestNumbersOfComparisons(t *testing.T) {
	less, more := -0.25, 0.125
	add := func(stage string, requests int, metric string, measured, simulated float64,
		e *float64) validate.RecordComparison {
		return validate.RecordComparison{Run: "r", Stage: stage, Metric: metric, Measured: measured,
			Simulated: simulated, Error: e, Requests: requests}
	}
	r := &validate.ReplayReport{Name: "r", File: "r.csv.gz", Format: "csv", Recorded: 120, SpanS: 64.8,
		Engine: "vllm-0.19", Failed: 1, SkipS: 0.5, Skipped: 2, Rejected: 3,
		Prefix: &validate.PrefixEstimate{Full: validate.AsMeasured{TTFT: 1.5, TPOT: 1},
			Cached: validate.AsMeasured{TTFT: 1.02, TPOT: 1}, Requests: 120},
		Summary: metrics.Summary{System: "vllm", Model: "m", GPU: "g",
			PrefixCache: &metrics.PrefixStats{HitShare: 0.25},
			Warnings:    []warn.Warning{warn.New(warn.Assumed, "more tokens than measured")}},
		Comparisons: []validate.RecordComparison{
			add("all", 117, "ttft_mean_s", 2, 1.5, &less), add("all", 117, "tpot_p99_s", 0.04, 0.045, &more),
			add("5 req/s, 0-9 s", 60, "e2e_p99_s", 0, 3, nil),
			add("5 req/s, 0-9 s", 60, "throughput_tok_s", 1368, 1365, new(float64))}}
	text := printed(t, Comparison(r))
	expectIn(t, text, "r.csv.gz (csv), 120 requests over 64.8 s, against vllm simulated: m on g, "+
		"engine vllm-0.19.", "1 request failed in the record: left out of both.",
		"2 requests arrived before 0.5 s: simulated, but in no figure.",
		"3 requests rejected by the simulated server: left out of both. Do the model's context and "+
			"the room for KV match the server's?",
		"Prefix cache: the record identifies shared prompt content; the simulated cache has 25.0 % of "+
			"their tokens (--prefix-hit SHARE sets another share).",
		"The log does not say whether prompts hit the prefix cache. Hits fit better (TTFT +2 %, no "+
			"hits TTFT +50 %), so all prompts hit; --prefix-hit 0 simulates no hits.",
		"117 requests. Error: simulated over measured less 1. Mean and percentiles are over requests, "+
			"TPOT is a request's mean time between tokens.",
		"figure measured simulated error, %", "TTFT mean, s 2.00 1.50 -25.0",
		"TPOT P99, ms 40.0 45.0 +12.5",
		"Stage: 5 req/s, 0-9 s 60 requests.", "time end to end P99, s ~ 0 3.00 -",
		"output, tok/s 1368 1365 +0.0", "~ P99 of fewer than 100 requests: about their largest",
		"more tokens than measured")
}

// The document of a folder equals the document of the report in memory.
func TestComparisonOfAFolder(t *testing.T) {
	record, err := records.Read(filepath.Join("..", "..", "traces", "testdata", "measured",
		"llama2-7b_h100_codegen.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	record.Failed = 2
	c, err := config.LoadServer("", []string{"model=llama2-7b", "gpu=h100-80gb"}, false, "")
	if err != nil {
		t.Fatal(err)
	}
	r := validate.Replay{Name: "codegen", File: "codegen.csv.gz", Record: record, Config: c, Skip: 2,
		PrefixHit: validate.PrefixAuto, Dir: t.TempDir(), Run: func(ctx context.Context, p config.Point,
			sink run.Sink) (metrics.Summary, error) {
			sum, err := run.NewSimulator().Run(ctx, p, sink)
			sum.Warnings = append(sum.Warnings, warn.New(warn.Window, "a warning"))
			return sum, err
		}}
	report, err := r.Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d := Comparison(report)
	if len(d.Lead) != 5 || !strings.Contains(d.Lead[1], "because the log names no version") ||
		len(d.Tables) < 3 || len(d.Warnings) == 0 {
		t.Errorf("the document is %+v", d)
	}
	same(t, r.Dir, d)
}

// Both sides rise from none to all of the requests.
func TestRequestsOfComparisons(t *testing.T) {
	all, err := Requests(filepath.Join("testdata", "requests"), &validate.ReplayReport{File: "r.csv"})
	if err != nil {
		t.Fatal(err)
	}
	ttft := all[0].Charts[0]
	for _, l := range ttft.Lines {
		if first, last := l.Points[0], l.Points[len(l.Points)-1]; len(l.Points) != shareSteps+1 ||
			first.Y != 0 || last.Y != 100 || !(first.X < last.X) {
			t.Errorf("%s is from %+v to %+v", l.Name, first, last)
		}
	}
	if ttft.Title != "time to first token, 372 requests" {
		t.Errorf("%q", ttft.Title)
	}
}

// Small and odd comparisons have pictures, too.
func TestOddRequests(t *testing.T) {
	const header = "id,stage,arrival_s,measured_ttft_s,simulated_ttft_s,measured_tpot_s," +
		"simulated_tpot_s\n"
	for name, c := range map[string]struct {
		rows, problem string
		charts        int // of distributions
	}{
		"one request":   {"1,a,0,0.1,0.2,0.01,0.02\n", "", 2},
		"all at once":   {strings.Repeat("1,a,0,0.1,0.1,0.01,0.01\n", 60), "", 2},
		"single tokens": {"1,a,0,0.1,0.2,,\n2,a,3,0.1,0.2,,\n", "", 1},
		"no request":    {"", "requests.csv: no row", 0},
		"not a number":  {"1,a,0,x,0.2,0.01,0.02\n", `measured_ttft_s = "x": want a number`, 0},
	} {
		dir := folder(t, map[string]string{"requests.csv": header + c.rows})
		all, err := Requests(dir, &validate.ReplayReport{})
		if (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s: %v, want %q", name, err, c.problem)
			continue
		}
		if _, err := figures.Draw(t.Context(), dir, all); err != nil || len(all) > 0 &&
			len(all[0].Charts) != c.charts {
			t.Errorf("%s: %v, %d figures", name, err, len(all))
		}
	}
}
