package answers

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/show"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// printed is what a terminal shows of an answer, words separated by one space.
func printed(t *testing.T, d *doc.Doc) string {
	t.Helper()
	var out bytes.Buffer
	if err := show.Text(&out, d, show.Options{Details: true}); err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(strings.ReplaceAll(out.String(), "│", " ")), " ")
}

func expectIn(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// A run that ended early is not judged by the service level.
func TestServiceLevelOfInterruptedRuns(t *testing.T) {
	early := metrics.Summary{System: "s", Rate: 1, Completed: 1, Interrupted: "interrupted"}
	met := metrics.Summary{System: "s", Rate: 1, Completed: 1, SLOMet: new(true)}
	missed := metrics.Summary{System: "s", Rate: 1, Completed: 1, SLOMet: new(false)}
	for want, sums := range map[string][]metrics.Summary{
		"-": {early, early}, "met": {met, met}, "no": {missed}, "1/2": {met, missed},
		"1/1": {met, early}, "0/1": {missed, early},
	} {
		rows := (&Runs{Sums: sums, Settings: make([]map[string]any, len(sums))}).rows(nil)
		if got := rows[0].state(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Details have every latency at every statistic and all rates, as means over the seeds that served
// requests. A metric that no system has gets no column.
func TestDetails(t *testing.T) {
	good := 0.75
	of := func(system string, served int, add float64) metrics.Summary {
		stats := func(v float64) metrics.Stats {
			return metrics.Stats{Mean: v + add, P50: v + 1 + add, P90: v + 2 + add, P95: v + 3 + add,
				P99: v + 4 + add}
		}
		return metrics.Summary{System: system, Rate: 1, Completed: served, Rejected: 9 - served,
			TTFT: stats(11), TBT: stats(.021), TPOT: stats(.031), E2E: stats(41), QueueDelay: stats(51),
			RequestThroughput: 0.9, RequestGoodput: &good, PromptTokS: 1234, ThroughputTokS: 56,
			TotalTokS: 1290}
	}
	proxy := of("sparse", 9, 0)
	proxy.RecallProxy, proxy.DRAMUse = &metrics.RecallProxy{Mean: 0.98}, &metrics.Use{Mean: 0.125,
		Peak: 0.5}
	proxy.PrefixCache = &metrics.PrefixStats{PromptTokens: 200, HitTokens: 80, HitShare: 0.4,
		DRAM: metrics.PrefixTier{HitTokens: 60}}
	text := printed(t, (&Runs{Unit: "requests/s", Sums: []metrics.Summary{of("dense", 9, 0),
		of("dense", 9, 2), of("dense", 0, 100), proxy}}).Doc())
	expectIn(t, text, "1 dense TTFT, s 12.0 13.0 14.0 15.0 16.0", "TBT, ms 1021 2021", "TPOT, ms 1031",
		"time end to end, s 42.0 43.0 44.0 45.0 46.0", "scheduling delay, s 52.0",
		"1 sparse TTFT, s 11.0", "served served within SLO input output input and output",
		"1 dense 0.900 0.750 1234 56.0 1290", "1 sparse 51.0 0 98.0", "1 sparse 12.5",
		"1 sparse 40.0 30.0 0", "the column SLO judges these statistics of a run, not each request")
	for _, gone := range []string{"HBM peak", "GPU busy", "hits in HBM", "blocks loaded"} {
		if strings.Contains(text, gone) {
			t.Errorf("no run has %q:\n%s", gone, text)
		}
	}
}

// A bound on TBT that the configuration does not set says where it is from.
func TestTheDefaultBoundIsExplained(t *testing.T) {
	for _, c := range []struct {
		set  []string
		want string
	}{
		{nil, "SLO: P99 TBT <= 0.5 s (default: 25 unloaded decode steps; set slo.tbt_s), mean x"},
		{[]string{"slo.tbt_s=0.5"}, "SLO: P99 TBT <= 0.5 s, mean x"},
		{[]string{"slo.tbt_factor=30"}, "SLO: P99 TBT <= 0.5 s, mean x"},
	} {
		p, err := config.LoadServer("", append(c.set, "model=llama2-7b", "gpu=h100-80gb"), true, "")
		if err != nil {
			t.Fatal(err)
		}
		r := &Runs{Sums: []metrics.Summary{{SLO: "P99 TBT <= 0.5 s, mean x"}},
			DefaultTBT: DefaultTBT([]config.Point{p})}
		if got := r.Levels(); len(got) != 1 || got[0] != c.want {
			t.Errorf("%v: %q, want %q", c.set, got, c.want)
		}
	}
}

// The runs of one setting of the axes stand together, whatever stands between them, and the system
// has the setting.
func TestSettingsStandTogether(t *testing.T) {
	sums := []metrics.Summary{
		{System: "vllm", Rate: 0.1, Completed: 1}, {System: "sparseserve", Rate: 0.1, Completed: 1},
		{System: "sparseserve", Rate: 0.1, Completed: 1}, {System: "vllm-s", Rate: 0.1, Completed: 1},
	}
	four := map[string]any{"offload.working_set_steps": int64(4), "system.kv_gib": 2.0,
		"system.preset": "x"}
	r := &Runs{Sums: sums, Unit: "requests/s", Settings: []map[string]any{nil, nil, four, nil}}
	table := r.Doc().Tables[0]
	var rows []string
	for _, row := range table.Rows {
		rows = append(rows, row.At(0)+" "+row.At(1))
	}
	if want := []string{"0.1 vllm", "0.1 sparseserve", "0.1 vllm-s",
		"0.1 sparseserve, working_set_steps=4, kv_gib=2"}; !slices.Equal(rows, want) {
		t.Errorf("rows %q, want %q", rows, want)
	}
}

// Rows of one setting stand between rules, and values that look different with three digits have no
// more.
func TestRowsAreGroupedByTheAxis(t *testing.T) {
	table := func(values ...float64) (rows []string) {
		r := &Runs{Unit: "requests/s"}
		for _, v := range values {
			for _, rate := range []float64{0.1, 0.2} {
				r.Sums = append(r.Sums, metrics.Summary{System: "s", Rate: rate, Completed: 1,
					TBT: metrics.Stats{Mean: 2 * v, P99: 1}})
				r.Settings = append(r.Settings, map[string]any{"card.link_h2d": v})
			}
		}
		results := r.Doc().Tables[0]
		for _, row := range results.Rows {
			name := row.At(1)
			if row.Ruled {
				name = "rule, " + name
			}
			rows = append(rows, name)
		}
		above := slices.ContainsFunc(results.Legend, func(line string) bool {
			return strings.HasPrefix(line, "a mean above its P99: fewer than 1 % of the values")
		})
		if want := slices.Max(values) > 0.5; above != want {
			t.Errorf("%v: the legend %q explains a mean above its P99: %t", values, results.Legend, above)
		}
		return rows
	}
	for _, c := range []struct {
		values []float64
		want   []string
	}{
		{[]float64{0.2255, 12.3456}, []string{"s, link_h2d=0.226", "s, link_h2d=0.226",
			"rule, s, link_h2d=12.3", "s, link_h2d=12.3"}},
		{[]float64{0.2255, 0.2259}, []string{"s, link_h2d=0.2255", "s, link_h2d=0.2255",
			"rule, s, link_h2d=0.2259", "s, link_h2d=0.2259"}},
		{[]float64{0.25}, []string{"s", "s"}},
	} {
		if rows := table(c.values...); !slices.Equal(rows, c.want) {
			t.Errorf("rows %q, want %q", rows, c.want)
		}
	}
}

// The answer is the largest load below the first that misses the service level.
func TestSustainedLoads(t *testing.T) {
	var sums []metrics.Summary
	for system, misses := range map[string]float64{"good": 9, "fair": 3, "odd": 1, "bad": 1} {
		for _, rate := range []float64{1, 2, 3} {
			met := rate < misses || system == "odd" && rate == 3 // above a rate that it misses
			sums = append(sums, metrics.Summary{System: system, Rate: rate, Completed: 1, SLOMet: &met})
		}
	}
	slices.SortFunc(sums, func(a, b metrics.Summary) int {
		return strings.Compare(a.System,
			b.System)
	})
	r := &Runs{Sums: sums, Unit: "requests/s"}
	want := []string{"bad serves less than 1 req/s within the SLO; fair 2; good at least 3; " +
		"odd less than 1."}
	if got := r.Doc().Answers; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	r = &Runs{Sums: []metrics.Summary{sums[0], sums[6]}, Unit: "requests/s"} // both at 1
	if got := r.Doc().Answers; !slices.Equal(got,
		[]string{"bad serves less than 1 req/s within the SLO; good at least 1."}) {
		t.Errorf("of one load: %q", got)
	}
	r.Sums = sums
	for i := range sums {
		sums[i].Rate, sums[i].Concurrency = 0, 4
	}
	if got := r.Doc().Answers; len(got) > 0 {
		t.Errorf("of a closed loop: %q", got)
	}
}

// Preemptions have columns where there are some: the mean over all seeds.
func TestPreemptionsAreShown(t *testing.T) {
	r := &Runs{Unit: "requests/s", Sums: []metrics.Summary{
		{System: "a", Rate: 1, Seed: 1, Completed: 1, Preempted: 3, RecomputedShare: 0.5},
		{System: "a", Rate: 1, Seed: 2, Completed: 1}, {System: "b", Rate: 1, Seed: 1, Completed: 1}}}
	got := cells(t, r.Doc().Tables, "Results", "a")
	if got["preempted times"] != "1.50" || got["recomputed % of time"] != "25.0" {
		t.Errorf("%v", got)
	}
	r.Sums = r.Sums[1:]
	table := r.Doc().Tables[0]
	for _, i := range table.Shown() {
		if name := table.Columns[i].Name; name == "preempted" || name == "recomputed" {
			t.Errorf("a column %s of nothing", name)
		}
	}
}

// Systems are compared seed by seed where there are five seeds: they have the same arrivals.
func TestPairedDifferences(t *testing.T) {
	var sums []metrics.Summary
	for seed := range uint64(5) {
		for system, more := range map[string]float64{"a": 0, "b": 2} {
			sums = append(sums, metrics.Summary{System: system, Rate: 1, Seed: seed, Completed: 1,
				TTFT: metrics.Stats{Mean: 10*float64(seed) + more}})
		}
	}
	slices.SortStableFunc(sums, func(a, b metrics.Summary) int {
		return strings.Compare(a.System, b.System)
	})
	text := printed(t, (&Runs{Sums: sums, Unit: "requests/s"}).Doc())
	expectIn(t, text, "1 b a mean TTFT (s) 2.00 2.00 2.00 5")
	text = printed(t, (&Runs{Sums: sums[:4], Unit: "requests/s"}).Doc())
	if strings.Contains(text, "against") {
		t.Errorf("of few seeds:\n%s", text)
	}
}

// Warnings of the same kind share a line whatever their numbers. Two kinds of one trace do not.
func TestWarningsShareLines(t *testing.T) {
	r := &Runs{Sums: []metrics.Summary{
		{Name: "a", System: "vllm", Rate: 1, Warnings: []warn.Warning{
			{Kind: warn.Rejected, Text: "12 of 300 requests rejected"},
			{Kind: warn.RowsLeft, Text: "3 rows left out: t.csv"}}},
		{Name: "b", System: "sparseserve", Rate: 1, Warnings: []warn.Warning{
			{Kind: warn.Truncated, Text: "4 of 300 prompts truncated"},
			{Kind: warn.Rejected, Text: "1 of 300 requests rejected"},
			{Kind: warn.RowsLeft, Text: "3 rows left out: t.csv"},
			{Kind: warn.RowsLeft, Subject: "failed", Text: "2 rows without an answer: t.csv"}}},
	}}
	want := []warn.Warning{
		{Kind: warn.Rejected, Text: "12 of 300 requests rejected (and 1 more like it)", Of: "all runs"},
		{Kind: warn.Truncated, Text: "4 of 300 prompts truncated", Of: "sparseserve at 1"},
		{Kind: warn.RowsLeft, Text: "3 rows left out: t.csv", Of: "all runs"},
		{Kind: warn.RowsLeft, Subject: "failed", Text: "2 rows without an answer: t.csv",
			Of: "sparseserve at 1"},
	}
	if got := r.Doc().Warnings; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Warnings about requests and the queue are above those about the cost model, the gravest first.
func TestSeriousWarningsFirst(t *testing.T) {
	r := &Runs{Sums: []metrics.Summary{{Name: "a", System: "vllm", Rate: 1, Warnings: []warn.Warning{
		{Kind: warn.HeadsSampled, Text: "heads sampled"}, {Kind: warn.Assumed, Text: "assumed"},
		{Kind: warn.FewRequests, Text: "few"}, {Kind: warn.Truncated, Text: "truncated"},
		{Kind: warn.UnstableQueue, Text: "unstable"}, {Kind: warn.Rejected, Text: "rejected"}}}}}
	var texts []string
	for _, w := range r.Doc().Warnings {
		texts = append(texts, w.Text)
	}
	want := []string{"rejected", "unstable", "truncated", "few", "heads sampled", "assumed"}
	if !slices.Equal(texts, want) {
		t.Errorf("%q, want %q", texts, want)
	}
}

// A warning names the runs that have it by system, settings of axes and load.
func TestWhichRuns(t *testing.T) {
	var r Runs
	for _, system := range []string{"a", "b"} {
		for _, budget := range []int{1024, 2048} {
			for _, rate := range []float64{0.5, 1} {
				for seed := range uint64(2) {
					r.Sums = append(r.Sums, metrics.Summary{System: system, Rate: rate, Seed: seed})
					r.Settings = append(r.Settings, map[string]any{"selection.budget_tokens": budget,
						"workload.rate": rate, "seed": seed})
				}
			}
		}
	}
	for want, numbers := range map[string][]string{
		"a, budget_tokens=2048 at 1":                                    {"7"}, // of one seed
		"a, budget_tokens=1024 at 0.5; a, budget_tokens=2048 at 0.5, 1": {"0", "5", "6"},
		"b, budget_tokens=1024 at 0.5":                                  {"8", "9"},
	} {
		if got := r.which(numbers); got != want {
			t.Errorf("%q: %q, want %q", numbers, got, want)
		}
	}
	near := warn.New(warn.NearLimit, "near a limit: of the step").About("all KV")
	r.Sums[6].Warnings = []warn.Warning{near}
	if got := r.warnings(); len(got) != 1 || got[0].Of != "a, budget_tokens=2048 at 1" {
		t.Errorf("%+v", got)
	}
}
