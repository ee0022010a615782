package files

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// SafeCell is a cell of text as CSV files have it. Spreadsheets calculate what begins with = + - or
// @, also behind a tab or a line end, so such a text has an apostrophe before it. Numbers stay as
// they are. PlainCell is its inverse.
func SafeCell(text string) string {
	if _, err := strconv.ParseFloat(text, 64); err != nil && calculates(text) {
		return "'" + text
	}
	return text
}

// PlainCell is the text that SafeCell was given.
func PlainCell(cell string) string {
	if rest, ok := strings.CutPrefix(cell, "'"); ok && calculates(rest) {
		return rest
	}
	return cell
}

// calculates tells the texts that spreadsheets calculate, with any number of apostrophes before
// them, so that each text has a cell of its own.
func calculates(text string) bool {
	text = strings.TrimLeft(text, "'")
	return text != "" && strings.ContainsAny(firstRune(text), "=+-@\t\r\n＝＋－＠")
}

func firstRune(text string) string {
	for _, r := range text {
		return string(r)
	}
	return ""
}

// CSVCell is a cell within a line of a CSV that is written by hand, quoted where it has to be.
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

// Flush writes what is left, and returns the first error of all writes.
func (c CSVWriter) Flush() error {
	c.w.Flush()
	return c.w.Error()
}

// CSVReader reads rows that a CSVWriter wrote. Its errors name file and line, and say what is
// wrong.
type CSVReader struct {
	path  string
	Above int // lines of the file above what is read
	*csv.Reader
}

// NewCSVReader returns a reader of rows, all as long as the first. Errors call the file path.
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

// ReadAll returns the rows that are left.
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
