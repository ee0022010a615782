package files

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// SafeCell escapes a text for a CSV cell. Spreadsheets evaluate text that begins with = + - or @,
// also after a tab or a line end, so such a text gets a leading apostrophe. Numbers are unchanged.
// PlainCell is its inverse.
func SafeCell(text string) string {
	if _, err := strconv.ParseFloat(text, 64); err != nil && calculates(text) {
		return "'" + text
	}
	return text
}

// PlainCell returns the text that SafeCell escaped.
func PlainCell(cell string) string {
	if rest, ok := strings.CutPrefix(cell, "'"); ok && calculates(rest) {
		return rest
	}
	return cell
}

// calculates reports whether spreadsheets would evaluate a text, with any number of leading
// apostrophes, so that escaping is reversible.
func calculates(text string) bool {
	return strings.IndexAny(strings.TrimLeft(text, "'"), "=+-@\t\r\n＝＋－＠") == 0
}

// CSVCell returns a cell for a CSV line that is written by hand, quoted if necessary.
func CSVCell(text string) string {
	text = SafeCell(text)
	if strings.ContainsAny(text, ",\"\r\n") {
		return `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
	}
	return text
}

// CSVWriter writes CSV whose cells no spreadsheet evaluates as formulas (SafeCell).
type CSVWriter struct{ w *csv.Writer }

// NewCSVWriter returns a writer of rows. Flush ends it.
func NewCSVWriter(w io.Writer) CSVWriter { return CSVWriter{csv.NewWriter(w)} }

// Write writes a row.
func (c CSVWriter) Write(row []string) error {
	safe := make([]string, len(row))
	for i, cell := range row {
		safe[i] = SafeCell(cell)
	}
	return c.w.Write(safe)
}

// Flush writes buffered rows, and returns the first error of all writes.
func (c CSVWriter) Flush() error {
	c.w.Flush()
	return c.w.Error()
}

// CSVReader reads rows that a CSVWriter wrote. Its errors name file, line and fault.
type CSVReader struct {
	path  string
	Above int // lines of the file above the text
	*csv.Reader
}

// NewCSVReader returns a reader of rows, all as long as the first. Errors name path.
func NewCSVReader(path string, r io.Reader) CSVReader {
	return CSVReader{path, 0, csv.NewReader(r)}
}

// Read returns the next row, or io.EOF.
func (c CSVReader) Read() ([]string, error) {
	row, err := c.Reader.Read()
	for i, cell := range row {
		row[i] = PlainCell(cell)
	}
	return row, c.explained(err, len(row))
}

// ReadAll returns the remaining rows.
func (c CSVReader) ReadAll() (rows [][]string, err error) {
	for {
		row, err := c.Read()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
}

func (c CSVReader) explained(err error, cells int) error {
	var at *csv.ParseError
	switch {
	case err == nil || err == io.EOF:
		return err
	case !errors.As(err, &at):
		return fmt.Errorf("%s: %w", c.path, err)
	case errors.Is(err, csv.ErrFieldCount):
		return fmt.Errorf("%s:%d: %d cells where the first row has %d", c.path,
			c.Above+at.Line, cells,
			c.FieldsPerRecord)
	}
	return fmt.Errorf("%s:%d: not valid CSV: a quote is left open or stands inside a cell", c.path,
		c.Above+at.Line)
}

// Row is a row of a table below its header. The first fault of a cell that is accessed is the
// table's.
type Row struct {
	table         CSVReader
	header, cells []string
	err           error
}

// EachRow reads a table that a command made, also packed, and passes its rows to do, one at a time.
// found is false if there is no row.
func EachRow(path string, do func(*Row)) (found bool, err error) {
	f, err := OpenResult(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	text, err := Unpack(f)
	if err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	defer text.Close()
	r := &Row{table: NewCSVReader(path, text)}
	r.header, err = r.table.Read()
	r.table.ReuseRecord = true
	for err == nil {
		if r.cells, err = r.table.Read(); err == nil {
			found = true
			do(r)
			err = r.err
		}
	}
	if err == io.EOF {
		return found, nil
	}
	return found, err
}

// Has reports whether the table has a column.
func (r *Row) Has(column string) bool { return slices.Contains(r.header, column) }

// Text returns a cell.
func (r *Row) Text(column string) string {
	i := slices.Index(r.header, column)
	if i < 0 {
		r.err = cmp.Or(r.err, fmt.Errorf("%s: no column %q", r.table.path, column))
		return ""
	}
	return r.cells[i]
}

// Number returns a cell that holds a number.
func (r *Row) Number(column string) float64 {
	v, err := strconv.ParseFloat(r.Text(column), 64)
	if err != nil {
		r.Want(column, "a number")
	}
	return v
}

// Want reports that a cell does not hold what it should.
func (r *Row) Want(column, what string) {
	line, _ := r.table.FieldPos(0)
	r.err = cmp.Or(r.err, fmt.Errorf("%s:%d: %s = %q: want %s", r.table.path, line, column,
		r.Text(column), what))
}
