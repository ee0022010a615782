package run

import (
	"bytes"
	"fmt"

	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/stats"
)

// Table builds a CSV file.
type Table struct{ rows [][]string }

// NewTable starts a table with its header.
func NewTable(columns ...string) *Table { return &Table{[][]string{columns}} }

// Add adds a row of texts and numbers. Parsing a written float gives the same number. Nil cells are
// empty.
func (t *Table) Add(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		switch x := c.(type) {
		case nil:
		case float64:
			row[i] = stats.Exact(x)
		case *float64:
			if x != nil {
				row[i] = stats.Exact(*x)
			}
		default:
			row[i] = fmt.Sprint(c)
		}
	}
	t.rows = append(t.rows, row)
}

// Bytes returns the file.
func (t *Table) Bytes() []byte {
	var out bytes.Buffer
	w := files.NewCSVWriter(&out)
	for _, row := range t.rows {
		w.Write(row)
	}
	if err := w.Flush(); err != nil {
		panic(err) // a buffer takes all
	}
	return out.Bytes()
}
