// Package answers builds the documents (package doc) of results: of runs (runs.go), plans,
// what-ifs, comparisons, validations and calibrations. A command passes its results from memory.
// Read loads the same from a result folder, so the terminal and a report of the folder agree.
package answers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// addFile adds a file of the folder to the document, if it is there.
func addFile(d *doc.Doc, path, name string) {
	if text, err := files.ReadResult(path); err == nil {
		d.Files = append(d.Files, doc.File{Name: name, Text: string(text)})
	}
}

// addTable adds a table to the document if it has rows.
func addTable(d *doc.Doc, t doc.Table) {
	if len(t.Rows) > 0 {
		d.Tables = append(d.Tables, t)
	}
}

// drawable returns the figures that have charts.
func drawable(all ...doc.Figure) []doc.Figure {
	return where(all, func(f *doc.Figure) bool { return len(f.Charts) > 0 })
}

// drawnLines returns the lines that have points.
func drawnLines(all []doc.Line) []doc.Line {
	return where(all, func(l *doc.Line) bool { return len(l.Points) > 0 })
}

// distinct returns the values of items, each once, in order.
func distinct[T any, V comparable](items []T, of func(*T) V) (values []V) {
	for i := range items {
		if v := of(&items[i]); !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	return values
}

// where returns the items that match.
func where[T any](items []T, match func(*T) bool) (some []T) {
	for i := range items {
		if match(&items[i]) {
			some = append(some, items[i])
		}
	}
	return some
}

// percent prints a share with its sign.
func percent(share float64) string {
	text := strconv.FormatFloat(100*share, 'f', 1, 64)
	switch {
	case text == "-0.0":
		return "0.0"
	case share > 0 && text != "0.0":
		return "+" + text
	}
	return text
}

// digits prints a number of a table.
func digits(v float64) string { return stats.Digits(v) }

// compared returns the metric of a figure that files name by key, such as ttft_mean_s. Step figures
// are not metrics of a run.
func compared(key string) metrics.Metric {
	switch key {
	case "queue_delay_mean_s":
		return metrics.Of("delay_mean")
	case "step_decode_mean_s":
		return metrics.Metric{Name: "decode step", Stat: "mean", Unit: "ms", Scale: 1e3}
	case "step_mixed_mean_s":
		return metrics.Metric{Name: "mixed step", Stat: "mean", Unit: "ms", Scale: 1e3}
	}
	for _, m := range metrics.All() {
		if m.File == key {
			return m
		}
	}
	return metrics.Metric{Name: strings.ReplaceAll(key, "_", " "), Scale: 1}
}

// statOf returns the statistic of a metric for a reader, such as P99.
func statOf(m *metrics.Metric) string { return strings.Replace(m.Stat, "p", "P", 1) }

// inRow names a metric in a row, such as "TTFT mean, s".
func inRow(m *metrics.Metric) string {
	name := strings.TrimSpace(m.Name + " " + statOf(m))
	if m.Unit == "" {
		return name
	}
	return name + ", " + Short(m.Unit)
}

// off returns a cell with a relative error in %; a dash if there is none.
func off(e *float64) doc.Cell {
	if e == nil {
		return doc.None()
	}
	return doc.As(100**e, strings.Replace(fmt.Sprintf("%+.1f", 100**e), "-0.0", "+0.0", 1))
}
