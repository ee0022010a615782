package rows

import (
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strings"
)

// Table reads the rows of a CSV file below its header.
type Table struct {
	Header []string

	file *File
	csv  *csv.Reader
	line int // of the row last read
}

// NewTable reads the header of a file.
func NewTable(f *File) (*Table, error) {
	t := &Table{file: f, csv: csv.NewReader(f.text)}
	t.csv.FieldsPerRecord, t.csv.ReuseRecord = -1, true
	header, err := t.Next()
	if err == io.EOF {
		return nil, &Error{File: f.Name, Problem: "empty file"}
	} else if err != nil {
		return nil, err
	}
	for _, name := range header {
		if name = strings.TrimSpace(name); name != "" && t.Column(name) >= 0 {
			return nil, t.Fault(Wrong("header", strings.Join(header, ","), "has column "+name+" twice"))
		}
		t.Header = append(t.Header, strings.Clone(name))
	}
	return t, nil
}

// Column returns the index of a column, case-insensitive, or -1.
func (t *Table) Column(name string) int {
	return slices.IndexFunc(t.Header, func(h string) bool {
		return name != "" && strings.EqualFold(h, name)
	})
}

// Next returns the cells of the next non-blank row, valid until the next call. The error is io.EOF
// at the end.
func (t *Table) Next() ([]string, error) {
	for {
		t.file.lines.drop(t.csv.InputOffset())
		cells, err := t.csv.Read()
		var damage *csv.ParseError
		var known *Error
		switch {
		case err == io.EOF, errors.As(err, &known):
			return nil, err
		case errors.As(err, &damage):
			t.line = damage.StartLine
			return nil, t.Fault(Wrong("", "", "not valid CSV: a quote is left open or stands inside a "+
				"field"))
		case err != nil:
			return nil, &Error{File: t.file.Name, Line: t.line + 1, Problem: err.Error()}
		}
		t.line, _ = t.csv.FieldPos(0)
		if len(cells) > 1 || strings.TrimSpace(cells[0]) != "" {
			return cells, nil
		}
	}
}

// Whole returns an error if a row has another number of cells than the header.
func (t *Table) Whole(cells []string) error {
	if len(cells) == len(t.Header) {
		return nil
	}
	return Wrong("line", strings.Join(cells, ","), "has "+Plural(len(cells), "field")+
		", the header has "+Plural(len(t.Header), "column"))
}

// Source returns the file.
func (t *Table) Source() *File { return t.file }

// Line returns the line of the row last read.
func (t *Table) Line() int { return t.line }

// Open reports whether the row last read is the last row and has no line end.
func (t *Table) Open() bool { return t.file.lines.open(t.csv.InputOffset()) }

// Fault returns err as an error of the row last read.
func (t *Table) Fault(err error) *Error {
	v := valueError(err)
	if t.Open() {
		v.Problem += " (last line, without a line end: the file seems cut short)"
	}
	return v.In(t.file.Name, t.line)
}

// valueError converts an error to a ValueError.
func valueError(err error) ValueError {
	var v *ValueError
	if errors.As(err, &v) {
		return *v
	}
	return ValueError{Problem: err.Error()}
}
