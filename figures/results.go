package figures

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// Run is what the figures need of one run's summary. Times are in seconds.
type Run struct {
	Name     string  `json:"name"`
	Requests int     `json:"requests"`
	System   string  `json:"system"`
	Model    string  `json:"model"`
	GPU      string  `json:"gpu"`
	Seed     uint64  `json:"seed"`
	Rate     float64 `json:"rate"`     // requests/s
	Replicas int     `json:"replicas"` // of a fleet
	// clients of a closed loop, which has no rate
	Concurrency    int     `json:"concurrency"`
	TTFT           mean    `json:"ttft_s"`
	TBT            mean    `json:"tbt_s"`
	ThroughputTokS float64 `json:"throughput_tok_s"`
	// requests/s within the service level
	RequestGoodput *float64           `json:"request_goodput"`
	Completed      int                `json:"completed"`
	Rejected       int                `json:"rejected"`
	Steps          float64            `json:"steps"`
	PhaseS         map[string]float64 `json:"phase_s"`
	Live           *struct{}          `json:"live"` // nil of a simulation
	Warnings       []warn.Warning     `json:"warnings"`
	SLO            string             `json:"slo"`
	Settings       map[string]any     `json:"settings"` // what the axes of a sweep set

	series string // as legends name it; empty for the system's name
	trace  string // what it served; empty where nothing says so
	engine string // that it ran under; empty where nothing says so
	folder string // with its requests.csv; empty where there is none
	source string // the result folder
	in     string // as legends name source; empty where they need not
}

type mean struct {
	Mean float64 `json:"mean"`
}

// Read returns the runs of a result folder.
func Read(dir string) ([]Run, error) {
	var runs []Run
	if err := files.ReadJSON(filepath.Join(dir, "summary.json"), &runs); err != nil {
		return nil, err
	}
	for i := range runs {
		runs[i].source = dir
	}
	nameFleets(runs)
	return runs, servedOf(dir, runs)
}

// WithoutRequests returns how many runs of a result folder served requests, and how many of these
// lack requests.csv.
func WithoutRequests(dir string) (without, served int, err error) {
	runs, err := Read(dir)
	for i := range runs {
		if r := &runs[i]; r.Completed > 0 {
			served++
			if r.folder == "" || !hasFile(r.folder, "requests.csv") {
				without++
			}
		}
	}
	return without, served, err
}

// nameFleets makes the number of replicas a setting where it is all that varies but the system,
// and otherwise names fleets, each a series of its own.
func nameFleets(runs []Run) {
	const key = "fleet.replicas"
	replicas := func(r *Run) float64 { return float64(max(1, r.Replicas)) }
	setting := len(valuesOf(runs, replicas)) > 1 && len(valuesOf(runs, load)) == 1
	for i := range runs {
		r := &runs[i]
		_, axis := r.Settings[key]
		switch {
		case axis:
		case setting:
			r.Settings = maps.Clone(r.Settings)
			if r.Settings == nil {
				r.Settings = map[string]any{}
			}
			r.Settings[key] = replicas(r)
		case r.Replicas > 1:
			r.System = fmt.Sprintf("%s x%d", label(r.System), r.Replicas)
		}
	}
}

// table is a CSV. The first wrong cell that is asked for is its error.
type table struct {
	path   string
	header []string
	rows   [][]string
	before int // rows of the file before these
	err    error
}

// readTable returns the table of a result folder.
func readTable(dir string) (*table, error) {
	path := filepath.Join(dir, "table.csv")
	text, err := files.ReadResult(path)
	if err != nil {
		return nil, err
	}
	return parseTable(path, bytes.NewReader(text))
}

// parseTable reads a table that has a row.
func parseTable(path string, text io.Reader) (*table, error) {
	all, err := files.NewCSVReader(path, text).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(all) < 2 {
		return nil, fmt.Errorf("%s: no row", path)
	}
	return &table{path: path, header: all[0], rows: all[1:]}, nil
}

// eachRow reads a table of a run's folder row by row and hands it over with one row at a time;
// found says whether there is a row.
func eachRow(folder, name string, do func(*table)) (found bool, err error) {
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
	if errors.Is(err, io.EOF) {
		return false, fmt.Errorf("%s: empty, where a table has a first row", path)
	}
	t := &table{path: path, header: header}
	rows.ReuseRecord = true
	for err == nil {
		var row []string
		if row, err = rows.Read(); err == nil {
			t.rows, found = [][]string{row}, true
			do(t)
			t.before++
			err = t.err
		}
	}
	if errors.Is(err, io.EOF) {
		return found, nil
	}
	return found, err
}

// text returns a cell.
func (t *table) text(row int, column string) string {
	i := slices.Index(t.header, column)
	if i < 0 {
		t.err = cmp.Or(t.err, fmt.Errorf("%s: no column %q", t.path, column))
		return ""
	}
	return t.rows[row][i]
}

// number returns a cell that holds a number.
func (t *table) number(row int, column string) float64 {
	text := t.text(row, column)
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.err = cmp.Or(t.err, fmt.Errorf("%s: row %d: %s = %q: want a number", t.path,
			t.before+row+1,
			column, text))
	}
	return v
}
