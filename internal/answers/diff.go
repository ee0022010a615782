package answers

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/diff"
	"github.com/sparseserve/sparseserve/internal/doc"
)

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
			from, to = signed(min(low, high)), signed(max(low, high))
		}
		change := doc.None()
		if c := one.Change(); !math.IsNaN(c) {
			change = signed(100 * c)
		}
		t.Add(one.Point, metric, one.A, one.B, change, from, to, one.Seeds)
	}
	if marked {
		t.Legend = []string{"† of the requests served: others were rejected, in A, in B or in both, so " +
			"lower is not better"}
	}
	return t, differ
}

// signed formats a number with its sign and one decimal.
func signed(v float64) doc.Cell { return doc.As(v, fmt.Sprintf("%+.1f", v)) }
