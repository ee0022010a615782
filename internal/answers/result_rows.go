package answers

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/sparseserve/sparseserve/internal/files"
)

// resultRow is a row of a CSV that is read row by row. The first malformed cell that is accessed
// sets its error.
type resultRow struct {
	path   string
	header []string
	cells  []string
	before int // rows of the file
	err    error
}

// eachRow reads a table of a run's folder and passes its rows to do, one at a time. found is false
// if the table is missing or empty.
func eachRow(folder, name string, do func(*resultRow)) (found bool, err error) {
	path := filepath.Join(folder, name)
	f, err := files.OpenResult(path)
	if folder == "" || errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	rows := files.NewCSVReader(path, bufio.NewReaderSize(f, 1<<16))
	header, err := rows.Read()
	r := &resultRow{path: path, header: header}
	rows.ReuseRecord = true
	for err == nil {
		if r.cells, err = rows.Read(); err == nil {
			found = true
			do(r)
			r.before++
			err = r.err
		}
	}
	if errors.Is(err, io.EOF) {
		return found, nil
	}
	return found, err
}

// text returns a cell.
func (r *resultRow) text(column string) string {
	i := slices.Index(r.header, column)
	if i < 0 {
		r.err = cmp.Or(r.err, fmt.Errorf("%s: no column %q", r.path, column))
		return ""
	}
	return r.cells[i]
}

// number returns a cell that holds a number.
func (r *resultRow) number(column string) float64 {
	text := r.text(column)
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		r.err = cmp.Or(r.err, fmt.Errorf("%s: row %d: %s = %q: want a number", r.path, r.before+1,
			column, text))
	}
	return v
}
