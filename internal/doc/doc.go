// Package doc holds an answer for a reader, as data: sentences, warnings, tables and charts.
//
// Package answers builds one Doc from each kind of result. Package show prints it on a terminal, as
// Markdown, CSV, JSON and HTML; package figures draws its charts. Builders know nothing about
// media, and renderers know nothing about results, so that all media agree.
package doc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// Doc is an answer.
type Doc struct {
	Title    string         `json:"title"`
	Lead     []string       `json:"lead,omitempty"` // what was asked, a sentence each
	Answers  []string       `json:"answers,omitempty"`
	Warnings []warn.Warning `json:"warnings,omitempty"` // the gravest first
	Figures  []Figure       `json:"figures,omitempty"`
	Tables   []Table        `json:"tables,omitempty"`
	Files    []File         `json:"files,omitempty"` // such as the configuration
}

// Table has rows of cells under columns. A column without content is not shown.
type Table struct {
	Title string `json:"title,omitempty"`
	Note  string `json:"note,omitempty"` // a sentence above the table
	// Under is the heading that adjacent tables share; empty for a heading of its own.
	Under   string   `json:"under,omitempty"`
	Columns []Column `json:"columns"`
	// Key is the number of leading columns that identify a row; 0 for one.
	Key    int      `json:"key,omitempty"`
	Rows   []Row    `json:"rows"`
	Legend []string `json:"legend,omitempty"` // what signs in cells mean, a remark each
	// Folded marks a table that is shown on request, because it is long or explains another.
	Folded bool `json:"folded,omitempty"`

	ruled bool // the next row begins a group
}

// Column is the header of a column.
type Column struct {
	Name   string `json:"name"`
	Unit   string `json:"unit,omitempty"`
	Number bool   `json:"number,omitempty"` // aligned to the right
}

// Row is one row. If it has fewer cells than columns, the last ones are empty.
type Row struct {
	Cells []Cell `json:"cells"`
	// Ruled marks a row that begins a group, such as the systems at one rate.
	Ruled bool `json:"ruled,omitempty"`
}

// Cell is a text, or a value with a mark such as "*".
type Cell struct {
	Text  string   `json:"text,omitempty"`
	Value *float64 `json:"value,omitempty"`
	Mark  string   `json:"mark,omitempty"`
}

// File is a text file of the result, such as its configuration.
type File struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// None returns the cell of a value that does not exist, for example for a run that served nothing.
func None() Cell { return Cell{Text: "-"} }

// Text returns a cell of words on one line, whatever names they contain.
func Text(text string) Cell { return Cell{Text: text} }

// Number returns a cell of a value that is shown with three digits. All media except CSV and JSON
// show three digits, so that they agree.
func Number(v float64) Cell { return Cell{Value: &v} }

// Count returns a cell of a whole number.
func Count(n int) Cell {
	v := float64(n)
	return Cell{Text: strconv.Itoa(n), Value: &v}
}

// As returns a cell of a value that is shown as the text.
func As(v float64, text string) Cell { return Cell{Text: text, Value: &v} }

// Fixed returns a cell of a value in a format of package fmt, such as %.1f.
func Fixed(v float64, format string) Cell { return As(v, fmt.Sprintf(format, v)) }

// String returns the displayed text of the cell.
func (c Cell) String() string {
	if c.Text == "" && c.Value != nil {
		return stats.Digits(*c.Value) + c.Mark
	}
	return c.Text + c.Mark
}

// Shown lists the indices of the columns with content.
func (t *Table) Shown() (columns []int) {
	for i := range t.Columns {
		for _, r := range t.Rows {
			if i < len(r.Cells) && r.Cells[i].String() != "" {
				columns = append(columns, i)
				break
			}
		}
	}
	return columns
}

// HasUnits reports whether a column has a unit.
func (t *Table) HasUnits() bool {
	return slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Unit != "" })
}

// At returns the text of a cell; "" beyond the row's end.
func (r Row) At(column int) string {
	if column >= len(r.Cells) {
		return ""
	}
	return r.Cells[column].String()
}

// Columns returns columns from headers such as "system" and ">TTFT|mean s". A leading ">" aligns
// numbers to the right, and the text after "|" is the unit.
func Columns(heads ...string) []Column {
	all := make([]Column, len(heads))
	for i, head := range heads {
		name, number := strings.CutPrefix(head, ">")
		name, unit, _ := strings.Cut(name, "|")
		all[i] = Column{Name: name, Unit: unit, Number: number}
	}
	return all
}

// Add adds a row. A cell is a Cell, a text, a whole number, or a number that is shown with three
// digits. It panics for any other type.
func (t *Table) Add(cells ...any) {
	row := Row{Cells: make([]Cell, len(cells)), Ruled: t.ruled}
	for i, c := range cells {
		switch v := c.(type) {
		case Cell:
			row.Cells[i] = v
		case string:
			row.Cells[i] = Text(v)
		case int:
			row.Cells[i] = Count(v)
		case float64:
			row.Cells[i] = Number(v)
		default:
			panic(fmt.Sprintf("doc: a cell of type %T", c))
		}
	}
	t.Rows, t.ruled = append(t.Rows, row), false
}

// Rule begins a group with the next row.
func (t *Table) Rule() { t.ruled = true }
