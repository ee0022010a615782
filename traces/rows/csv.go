package rows

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strings"
)

// table is a CSV file. Tabs or semicolons may stand for commas.
type table struct {
	csv     *csv.Reader
	columns map[string]int // of names that were asked for; -1 if there is none
	row     tableRow       // last read
}

// openTable reads the header.
func (r *Reader) openTable() error {
	r.table = &table{csv: csv.NewReader(r.text), columns: map[string]int{}}
	r.table.csv.Comma = r.delimiter()
	r.table.csv.FieldsPerRecord, r.table.csv.ReuseRecord = -1, true
	header, err := r.cells()
	if err == io.EOF {
		return &Error{File: r.Name, Problem: "empty file"}
	}
	for _, name := range header {
		name = strings.TrimSpace(name)
		if r.column(name) >= 0 {
			return r.Fault(Wrong("header", strings.Join(header, ","), "has column "+name+" twice"))
		}
		r.Names = append(r.Names, strings.Clone(name))
	}
	return err
}

// delimiter returns what separates the columns of the header: a comma, or without one a tab or a
// semicolon.
func (f *File) delimiter() rune {
	head, _ := f.text.Peek(4096) // an error recurs at the next read
	line, _, _ := bytes.Cut(bytes.TrimLeft(head, "\r\n"), []byte("\n"))
	for _, other := range "\t;" {
		if bytes.ContainsRune(line, other) && !bytes.ContainsRune(line, ',') {
			return other
		}
	}
	return ','
}

// column returns the index of a column, case-insensitive, or -1.
func (r *Reader) column(name string) int {
	return slices.IndexFunc(r.Names, func(h string) bool {
		return name != "" && strings.EqualFold(h, name)
	})
}

// row returns the next non-blank row.
func (r *Reader) row() (Record, error) {
	cells, err := r.cells()
	if err != nil {
		return nil, err
	}
	if len(cells) != len(r.Names) {
		return nil, r.Fault(Wrong("line", strings.Join(cells, ","), "has "+Plural(len(cells), "field")+
			", the header has "+Plural(len(r.Names), "column")))
	}
	r.table.row = tableRow{r, cells}
	return &r.table.row, nil
}

// cells returns the cells of the next non-blank row.
func (r *Reader) cells() ([]string, error) {
	for {
		r.lines.drop(r.table.csv.InputOffset())
		cells, err := r.table.csv.Read()
		var damage *csv.ParseError
		if errors.As(err, &damage) {
			r.line = damage.StartLine
			return nil, r.Fault(Wrong("", "", "not valid CSV: a quote is left open or stands inside a "+
				"field"))
		} else if err != nil {
			return nil, err
		}
		r.line, _ = r.table.csv.FieldPos(0)
		if len(cells) > 1 || strings.TrimSpace(cells[0]) != "" {
			return cells, nil
		}
	}
}
