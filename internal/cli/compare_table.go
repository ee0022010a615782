package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/sparseserve/sparseserve/experiments/validate"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/traces"
)

// comparedMetrics are the rows of a stage.
func comparedMetrics() []struct {
	metric, title string
	scale         float64
} {
	return []struct {
		metric, title string
		scale         float64
	}{
		{"ttft_mean_s", "TTFT mean, s", 1}, {"ttft_p50_s", "TTFT P50, s", 1},
		{"ttft_p90_s", "TTFT P90, s", 1}, {"ttft_p99_s", "TTFT P99, s", 1},
		{"tpot_mean_s", "TPOT mean, ms", 1e3}, {"tpot_p50_s", "TPOT P50, ms", 1e3},
		{"tpot_p90_s", "TPOT P90, ms", 1e3}, {"tpot_p99_s", "TPOT P99, ms", 1e3},
		{"e2e_mean_s", "end to end mean, s", 1}, {"e2e_p50_s", "end to end P50, s", 1},
		{"e2e_p90_s", "end to end P90, s", 1}, {"e2e_p99_s", "end to end P99, s", 1},
		{"throughput_tok_s", "output, tok/s", 1},
	}
}

// printComparison prints what was compared, a table of the figures by stage, and
// what to bear in mind.
func printComparison(w io.Writer, c *compareCmd, record *traces.Measured,
	r *validate.ReplayReport) {
	fmt.Fprintf(w, "%s (%s), %s over %s, against %s simulated: %s on %s, engine %s.\n",
		inCell(files.Label(c.Measured)), record.Format,
		count(len(record.Requests), "request"), spanOf(record), r.Summary.System,
		inCell(r.Summary.Model), inCell(r.Summary.GPU), inCell(r.Config.Systems[0].Engine))
	for _, left := range []struct {
		n   int
		why string
	}{
		{r.Failed, "failed in the record: left out of both."},
		{r.Skipped, fmt.Sprintf("arrived before %g s: simulated, but in no figure.", c.Skip)},
		{r.Rejected, "rejected by the simulated server: left out of both. Are the model's context and " +
			"the room for KV those of the server?"},
	} {
		if left.n > 0 {
			fmt.Fprintf(w, "%s %s\n", count(left.n, "request"), left.why)
		}
	}
	if p := r.Summary.PrefixCache; p != nil {
		fmt.Fprintf(w, "Prefix cache: the record says what prompts have in common; the simulated cache "+
			"has %.1f %% of their tokens (--prefix-hit SHARE says another share).\n", 100*p.HitShare)
	}
	if r.Prefix != nil {
		fmt.Fprintf(w, "Prefix cache: %s.\n", r.Prefix)
	}
	if cold := r.Cold(); cold != "" {
		fmt.Fprintf(w, "Prefix cache: %s.\n", cold)
	}
	thin := printCompared(w, r)
	fmt.Fprintln(w, "Error: simulated over measured less 1. Mean and percentiles are over requests, "+
		"TPOT is a request's mean time between tokens.")
	if thin {
		fmt.Fprintf(w, "~ P99 of fewer than %d requests: about the largest of them\n", validate.FewForP99)
	}
	printWarnings(w, nil, []sim.Summary{r.Summary})
}

// spanOf is the time over which a record's requests arrived.
func spanOf(record *traces.Measured) string {
	return digits(record.Requests[len(record.Requests)-1].At.Seconds()) + " s"
}

// printCompared prints the table and says whether a figure is marked as thin.
func printCompared(w io.Writer, r *validate.ReplayReport) (thin bool) {
	t := newTable(w)
	t.AppendHeader(table.Row{"arrivals", "requests", "", "measured", "simulated", "error, %"})
	stage := ""
	for _, c := range r.Comparisons {
		head, requests := "", ""
		if c.Stage != stage {
			if stage != "" {
				t.AppendSeparator()
			}
			stage, head, requests = c.Stage, c.Stage, fmt.Sprint(c.Requests)
		}
		for _, m := range comparedMetrics() {
			if m.metric != c.Metric {
				continue
			}
			mark := ""
			if c.Thin() {
				mark, thin = " ~", true
			}
			t.AppendRow(table.Row{head, requests, m.title + mark, digits(m.scale * c.Measured),
				digits(m.scale * c.Simulated), percentOff(c.Error)})
		}
	}
	configs := rightAligned(4, 6)
	t.SetColumnConfigs(append(configs, rightAligned(2, 2)...))
	t.Render()
	return thin
}

// percentOff prints a relative error, with a sign.
func percentOff(e *float64) string {
	if e == nil {
		return "-"
	}
	return strings.Replace(fmt.Sprintf("%+.1f", 100**e), "-0.0", "+0.0", 1)
}
