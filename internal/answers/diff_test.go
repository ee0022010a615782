package answers

import (
	"testing"

	"github.com/sparseserve/sparseserve/experiments/diff"
)

// Figures of runs that rejected requests are marked, because they describe only the others.
func TestDiffMarksSurvivors(t *testing.T) {
	row := func(metric string, a, b float64) diff.Row {
		return diff.Row{Point: "p", Metric: metric, A: a, B: b, Seeds: 1}
	}
	report := diff.Report{Rows: []diff.Row{row(diff.ServedShare, 0.5, 1), row("ttft_mean_s", 1, 2)}}
	marked := Diff(&report, "a", "b").Tables[0]
	if got := marked.Rows[1].At(1); got != "ttft_mean_s"+survivor || len(marked.Legend) != 1 {
		t.Errorf("%q with legend %q", got, marked.Legend)
	}
	report.Rows[0] = row(diff.ServedShare, 1, 1)
	d := Diff(&report, "a", "b")
	if got := d.Tables[0]; got.Rows[0].At(1) != "ttft_mean_s" || got.Legend != nil ||
		got.Rows[0].At(4) != "+100.0" || got.Rows[0].At(5) != "-" {
		t.Errorf("%+v", got)
	}
	want := "1 of 2 figures differ; one seed: no confidence interval, see the key seed."
	if d.Answers[0] != want {
		t.Errorf("%q, want %q", d.Answers[0], want)
	}
}
