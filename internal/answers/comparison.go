package answers

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/diff"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/validate"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// Comparison returns the document that compares a real server's record with its simulation: one
// table for all requests, and one for each stage of the load.
func Comparison(r *validate.ReplayReport) *doc.Doc {
	d := &doc.Doc{Title: r.Name + ": measured and simulated", Lead: comparedRequests(r)}
	d.Warnings = (&Runs{Sums: []metrics.Summary{r.Summary}}).warnings()
	stage := ""
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		if c.Stage != stage {
			stage = c.Stage
			d.Tables = append(d.Tables, doc.Table{Title: "Stage: " + stage,
				Note:    Count(c.Requests, "request") + ".",
				Columns: doc.Columns("figure", ">measured", ">simulated", ">error, %")})
		}
		t := &d.Tables[len(d.Tables)-1]
		m := compared(c.Metric)
		name := doc.Text(inRow(&m))
		if c.Thin() {
			name.Mark = " ~"
			t.Legend = []string{fmt.Sprintf("~ P99 of fewer than %d requests: about their largest",
				validate.FewForP99)}
		}
		t.Add(name, m.Scale*c.Measured, m.Scale*c.Simulated, off(c.Error))
	}
	all := &d.Tables[0] // of validate.AllStages
	all.Title = "All requests"
	all.Note = Count(r.Comparisons[0].Requests, "request") + ". Error: simulated over measured less " +
		"1. Mean and percentiles are over requests, TPOT is a request's mean time between tokens."
	return d
}

// comparedRequests describes the compared requests and their prefix cache hits.
func comparedRequests(r *validate.ReplayReport) []string {
	lead := []string{fmt.Sprintf("%s (%s), %s over %s s, against %s simulated: %s on %s%s, engine %s.",
		r.File, r.Format, Count(r.Recorded, "request"), digits(r.SpanS), r.Summary.System,
		r.Summary.Model, r.Summary.GPU, r.Changed, r.Engine)}
	lead = append(lead, r.Notes...)
	for _, left := range []struct {
		n   int
		why string
	}{
		{r.Failed, "failed in the record: left out of both."},
		{r.Skipped, fmt.Sprintf("arrived before %g s: simulated, but in no figure.", r.SkipS)},
		{r.Rejected, "rejected by the simulated server: left out of both. Do the model's context and " +
			"the room for KV match the server's?"},
	} {
		if left.n > 0 {
			lead = append(lead, Count(left.n, "request")+" "+left.why)
		}
	}
	if p := r.Summary.PrefixCache; p != nil {
		lead = append(lead, fmt.Sprintf("Prefix cache: the record identifies shared prompt content; the "+
			"simulated cache has %.1f %% of their tokens (--prefix-hit SHARE sets another share).",
			100*p.HitShare))
	}
	if r.Prefix != nil {
		lead = append(lead, r.Prefix.String())
	}
	return lead
}

// readComparison builds the document of a comparison's folder.
func readComparison(dir string) (*doc.Doc, error) {
	r, err := validate.ReadReplay(dir)
	if err != nil {
		return nil, err
	}
	p := Comparison(r)
	if p.Figures, err = Requests(dir, r); err != nil {
		return nil, err
	}
	return onMachines(p, []string{dir}, nil)
}

// Requests returns the picture of the requests in a comparison's folder: the distributions of TTFT
// and TPOT, measured and simulated.
func Requests(dir string, r *validate.ReplayReport) ([]doc.Figure, error) {
	f := doc.Figure{Name: "distributions", Title: "Distributions of latencies",
		Caption: comparedRequests(r)[0]}
	for _, q := range []struct {
		column, name, label string
		scale               float64
	}{{"ttft_s", "time to first token", "TTFT (s)", 1},
		{"tpot_s", "mean time between tokens of a request", "TPOT (ms)", 1e3}} {
		var measured, simulated []float64
		found, err := eachRow(dir, run.RequestsCSV, func(row *files.Row) {
			if row.Text("measured_"+q.column) != "" { // of an answer with one token it is empty
				measured = append(measured, q.scale*row.Number("measured_"+q.column))
				simulated = append(simulated, q.scale*row.Number("simulated_"+q.column))
			}
		})
		if err == nil && !found {
			err = fmt.Errorf("%s: no row", filepath.Join(dir, run.RequestsCSV))
		}
		if err != nil {
			return nil, err
		}
		if len(measured) > 0 {
			f.Charts = append(f.Charts, &doc.Chart{X: q.label,
				Title: q.name + ", " + Count(len(measured), "request"), Lines: []doc.Line{
					{Name: "measured", Color: "#1a1a1a", Bare: true, Points: cumulative(measured)},
					{Name: "simulated", Color: "#c62f1f", Bare: true, Dashed: true,
						Points: cumulative(simulated)}}})
		}
	}
	if len(f.Charts) == 0 { // a record of aggregates
		return nil, nil
	}
	ofShares(f.Charts)
	return []doc.Figure{f}, nil
}

// shareSteps is the maximum number of equal steps in which a distribution is drawn.
const shareSteps = 100

// cumulative returns the share of values at or below each value, in %.
func cumulative(values []float64) []doc.Point {
	slices.Sort(values)
	n := len(values)
	points, steps := []doc.Point{{X: values[0]}}, min(n, shareSteps)
	for i := 1; i <= steps; i++ {
		at := (i*n + steps - 1) / steps // values
		points = append(points, doc.Point{X: values[at-1], Y: 100 * float64(at) / float64(n)})
	}
	return points
}

// Diff returns the document on the differences between two result folders, named a and b.
func Diff(r *diff.Report, a, b string) *doc.Doc {
	d := &doc.Doc{Title: a + " and " + b + ": differences"}
	if r.VersionA != "" {
		d.Lead = append(d.Lead, fmt.Sprintf("Made by different versions of the model: %s, %s.",
			r.VersionA, r.VersionB))
	}
	settings := doc.Table{Title: "Settings", Columns: doc.Columns("key", "A", "B")}
	for _, s := range r.Settings {
		settings.Add(s.Key, cmp.Or(s.A, "(none)"), cmp.Or(s.B, "(none)"))
	}
	addTable(d, settings)
	t, differ := differing(r)
	addTable(d, t)
	text := fmt.Sprintf("%d of %d figures differ", differ, len(r.Rows))
	if r.Rows[0].Seeds < 2 {
		text += "; one seed: no confidence interval, see the key seed."
	} else {
		text += " with 95 % confidence: of figures that are the same, one in twenty does."
	}
	d.Answers = append(d.Answers, text)
	for _, only := range []struct {
		in     string
		points []string
	}{{a, r.OnlyA}, {b, r.OnlyB}} {
		if len(only.points) > 0 {
			d.Answers = append(d.Answers, "Only in "+only.in+": "+strings.Join(only.points, ", ")+".")
		}
	}
	return d
}

// differing returns a row for each figure that differs, and their number.
func differing(r *diff.Report) (t doc.Table, differ int) {
	t = doc.Table{Title: "Figures", Columns: doc.Columns("point", "metric", ">A", ">B", ">change|%",
		">from|%", ">to|%", ">seeds")}
	last, rejects, marked := "", false, false
	for i := range r.Rows {
		one := &r.Rows[i]
		if one.Metric == diff.ServedShare {
			rejects = min(one.A, one.B) < 1
		}
		if !one.Differs() {
			continue
		}
		differ++
		if one.Point != last && last != "" {
			t.Rule()
		}
		last = one.Point
		metric := doc.Text(one.Metric)
		if rejects && one.Metric != diff.ServedShare {
			metric.Mark, marked = survivor, true
		}
		from, to := doc.None(), doc.None()
		if one.Low != nil && one.A != 0 {
			low, high := 100**one.Low/one.A, 100**one.High/one.A
			from, to = doc.Fixed(min(low, high), "%+.1f"), doc.Fixed(max(low, high), "%+.1f")
		}
		change := doc.None()
		if c := one.Change(); !math.IsNaN(c) {
			change = doc.Fixed(100*c, "%+.1f")
		}
		t.Add(one.Point, metric, one.A, one.B, change, from, to, one.Seeds)
	}
	if marked {
		t.Legend = []string{"† of the requests served: others were rejected, in A, in B or in both, so " +
			"lower is not better"}
	}
	return t, differ
}
