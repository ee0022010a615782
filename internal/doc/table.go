package doc

import (
	"fmt"
	"strings"
)

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
