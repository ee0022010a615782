// Package answers builds the documents (package doc) of results: of runs (runs.go), plans,
// what-ifs, comparisons, validations and calibrations. A command passes its results from memory.
// Read loads the same from a result folder, so the terminal and a report of the folder agree.
package answers

import (
	"slices"

	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/files"
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
