package traces

import (
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// WriteTable writes the description for a person: one row a quantity, then one row a set and
// quantity, then the warnings.
func (d Description) WriteTable(w io.Writer) error {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.SetTitle("%s: %s, %s", d.Path, d.Format, d.span())
	t.AppendHeader(table.Row{"set", "requests", "quantity", "mean", "min", "p1", "p5", "p25", "p50",
		"p75", "p95", "p99", "max"})
	t.AppendRow(line("all", d.Requests, "prompt tokens", d.Prompt, tokens))
	t.AppendRow(line("", "", "output tokens", d.Output, tokens))
	if d.Gap != nil {
		t.AppendRow(line("", "", "gap (s)", *d.Gap, seconds))
	}
	for _, s := range d.Sets {
		t.AppendSeparator()
		t.AppendRow(line(s.Set, s.Requests, "prompt tokens", s.Prompt, tokens))
		t.AppendRow(line("", "", "output tokens", s.Output, tokens))
	}
	var right []table.ColumnConfig
	for n := 4; n <= 13; n++ {
		right = append(right, table.ColumnConfig{Number: n, Align: text.AlignRight,
			AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(right)
	if _, err := fmt.Fprintln(w, t.Render()); err != nil {
		return err
	}
	for _, warning := range d.Warnings {
		if _, err := fmt.Fprintln(w, "warning:", warning); err != nil {
			return err
		}
	}
	return nil
}

func (d Description) span() string {
	if d.Gap == nil {
		return plural(d.Requests, "request") + ", no times"
	}
	return fmt.Sprintf("%s in %.6g s, %.4g requests/s, burstiness %.3g", plural(d.Requests, "request"),
		d.Seconds, d.Rate, d.GapCV)
}

func line(set string, requests any, quantity string, q Quantiles,
	format func(float64) string) table.Row {
	r := table.Row{set, requests, quantity}
	for _, v := range []float64{q.Mean, q.Min, q.P1, q.P5, q.P25, q.P50, q.P75, q.P95, q.P99, q.Max} {
		r = append(r, format(v))
	}
	return r
}

func tokens(v float64) string  { return fmt.Sprintf("%.0f", v) }
func seconds(v float64) string { return fmt.Sprintf("%.3g", v) }
