package cli

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/sparseserve/sparseserve/experiments/diff"
)

type diffCmd struct {
	A    string `arg:"" name:"A" help:"Result folder of simulate or sweep."`
	B    string `arg:"" name:"B" help:"Result folder to compare with it."`
	All  bool   `help:"Show also what does not differ."`
	JSON bool   `name:"json" help:"Print one JSON object and nothing else."`
}

// Help is what the command's help adds.
func (*diffCmd) Help() string {
	return `Points are matched by system, model, card, rate and swept keys; what is constant in each
folder may differ, so that two cards, models or versions can be compared. Over the seeds that both
have, the difference has a 95 % interval (Student's t of the differences seed by seed), and only
what this interval separates from 0 is shown. With one seed, all that differs is shown.`
}

func (d *diffCmd) Run(app *App) error {
	a, err := diff.Read(d.A)
	if err != nil {
		return err
	}
	b, err := diff.Read(d.B)
	if err != nil {
		return err
	}
	report, err := diff.Compare(a, b)
	if err != nil {
		return err
	}
	if d.JSON {
		return printJSON(app, report)
	}
	d.print(app.Stdout, report)
	return nil
}

func (d *diffCmd) print(w io.Writer, report *diff.Report) {
	if len(report.Settings) > 0 {
		fmt.Fprintln(w, "Settings:")
		for _, s := range report.Settings {
			fmt.Fprintf(w, "  %s: %s -> %s\n", s.Key, inCell(orNone(s.A)), inCell(orNone(s.B)))
		}
	}
	if report.ProgramA != "" {
		fmt.Fprintf(w, "Made by different programs: %s, %s\n", report.ProgramA, report.ProgramB)
	}
	t := newTable(w)
	t.AppendHeader(table.Row{"", "", "A", "B", "change", "95 %", "seeds"})
	last, shown, rejects, marked := "", 0, false, false
	for i := range report.Rows {
		r := &report.Rows[i]
		if r.Metric == diff.ServedShare {
			rejects = min(r.A, r.B) < 1
		}
		if !d.All && !r.Differs() {
			continue
		}
		shown++
		name := ""
		if r.Point != last {
			if last != "" {
				t.AppendSeparator()
			}
			name, last = r.Point, r.Point
		}
		metric := r.Metric
		if rejects && metric != diff.ServedShare {
			metric, marked = metric+"†", true
		}
		t.AppendRow(table.Row{name, metric, digits(r.A), digits(r.B), percent(r.Change()),
			changeInterval(r), r.Seeds})
	}
	t.SetColumnConfigs(rightAligned(3, 7))
	if shown > 0 {
		t.Render()
	}
	if marked {
		fmt.Fprintln(w, "†"+" of the requests served: others were rejected, in A, in B or in "+
			"both; lower is not better")
	}
	fmt.Fprintf(w, "%d of %d figures differ", shownOf(report), len(report.Rows))
	if report.Rows[0].Seeds < 2 {
		fmt.Fprint(w, "; one seed: no confidence interval, see the key seeds")
	} else {
		fmt.Fprint(w, " with 95 % confidence: of figures that are the same, one in twenty does")
	}
	fmt.Fprintln(w, ".")
	for _, only := range []struct {
		in     string
		points []string
	}{{d.A, report.OnlyA}, {d.B, report.OnlyB}} {
		if len(only.points) > 0 {
			fmt.Fprintf(w, "Only in %s: %s\n", only.in, inCell(strings.Join(only.points, ", ")))
		}
	}
}

func shownOf(report *diff.Report) (n int) {
	for i := range report.Rows {
		if report.Rows[i].Differs() {
			n++
		}
	}
	return n
}

func orNone(text string) string {
	if text == "" {
		return "(none)"
	}
	return text
}

func percent(share float64) string {
	if math.IsNaN(share) {
		return "-"
	}
	return fmt.Sprintf("%+.1f %%", 100*share)
}

// changeInterval is the 95 % interval of the change.
func changeInterval(r *diff.Row) string {
	if r.Low == nil || r.A == 0 {
		return "-"
	}
	low, high := *r.Low/r.A, *r.High/r.A
	return fmt.Sprintf("%+.1f to %+.1f %%", 100*min(low, high), 100*max(low, high))
}
