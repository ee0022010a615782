package rows

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strings"
)

// Table reads the rows of a CSV file below its header. Tabs or semicolons may stand for commas.
type Table struct {
	header  []string
	columns map[string]int // of names that were asked for; -1 if there is none
	file    *File
	csv     *csv.Reader
	line    int // of the row last read
}

// NewTable reads the header of a file.
func NewTable(f *File) (*Table, error) {
	t := &Table{file: f, csv: csv.NewReader(f.text), columns: map[string]int{}}
	t.csv.Comma = f.delimiter()
	t.csv.FieldsPerRecord, t.csv.ReuseRecord = -1, true
	header, err := t.next()
	if err == io.EOF {
		return nil, &Error{File: f.Name, Problem: "empty file"}
	} else if err != nil {
		return nil, err
	}
	for _, name := range header {
		name = strings.TrimSpace(name)
		if t.column(name) >= 0 {
			return nil, t.Fault(Wrong("header", strings.Join(header, ","), "has column "+name+" twice"))
		}
		t.header = append(t.header, strings.Clone(name))
	}
	return t, nil
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
func (t *Table) column(name string) int {
	return slices.IndexFunc(t.header, func(h string) bool {
		return name != "" && strings.EqualFold(h, name)
	})
}

// Names returns the header.
func (t *Table) Names() []string { return t.header }

// Has reports whether there is a column, case-insensitive.
func (t *Table) Has(name string) bool { return t.column(name) >= 0 }

// JSON returns false.
func (t *Table) JSON() bool { return false }

// Record returns the next non-blank row, valid until the next call. The error is io.EOF at the end.
func (t *Table) Record() (Record, error) {
	cells, err := t.next()
	if err != nil {
		return nil, err
	}
	if len(cells) != len(t.header) {
		return nil, t.Fault(Wrong("line", strings.Join(cells, ","), "has "+Plural(len(cells), "field")+
			", the header has "+Plural(len(t.header), "column")))
	}
	return &tableRow{t, cells}, nil
}

func (t *Table) next() ([]string, error) {
	for {
		t.file.lines.drop(t.csv.InputOffset())
		cells, err := t.csv.Read()
		var damage *csv.ParseError
		if errors.As(err, &damage) {
			t.line = damage.StartLine
			return nil, t.Fault(Wrong("", "", "not valid CSV: a quote is left open or stands inside a "+
				"field"))
		} else if err != nil {
			return nil, err
		}
		t.line, _ = t.csv.FieldPos(0)
		if len(cells) > 1 || strings.TrimSpace(cells[0]) != "" {
			return cells, nil
		}
	}
}

// Source returns the file.
func (t *Table) Source() *File { return t.file }

// Line returns the line of the row last read.
func (t *Table) Line() int { return t.line }

// Open reports whether the row last read is the last row and has no line end.
func (t *Table) Open() bool { return t.file.lines.open(t.csv.InputOffset()) }

// Fault returns err as an error of the row last read.
func (t *Table) Fault(err error) *Error {
	e := faultOf(err, t.file.Name, t.line)
	if t.Open() {
		e.Problem += " (last line, without a line end: the file seems cut short)"
	}
	return e
}
