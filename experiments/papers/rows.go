package papers

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/files"
)

// record is a row of results: a run, a candidate of a goodput search, or a row of a table.
type record struct {
	where string            // file and row, for errors
	cells map[string]string // by column, or by the path of keys in JSON: "ttft_s.mean"
	json  bool              // a key that is missing is 0
}

// readRecords returns the rows of a result folder; fs.ErrNotExist without results.
func readRecords(folder string) ([]record, error) {
	for _, name := range []string{run.SummaryFile, capacity.GoodputFile} {
		path := filepath.Join(folder, name)
		var rows []map[string]any
		err := files.ReadJSON(path, &rows)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		out := make([]record, len(rows))
		for i, row := range rows {
			out[i] = record{fmt.Sprintf("%s: row %d", path, i+1), map[string]string{}, true}
			for _, axes := range []string{"settings", "axes"} { // their keys are whole by themselves
				set, _ := row[axes].(map[string]any)
				delete(row, axes)
				maps.Copy(row, set)
			}
			out[i].flatten("", row)
		}
		return out, err
	}
	path := filepath.Join(folder, tableFile)
	text, err := files.ReadResult(path)
	if err != nil {
		return nil, err
	}
	return parseRecords(path, text)
}

// flatten adds a JSON value to the cells. Items of a list share a cell, separated by spaces.
func (r *record) flatten(path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			r.flatten(strings.TrimPrefix(path+"."+key, "."), v[key])
		}
	case []any:
		for _, item := range v {
			r.flatten(path, item)
		}
	case nil:
	default:
		r.cells[path] = strings.TrimSpace(r.cells[path] + " " + cellText(v))
	}
}

// cellText formats a value as in a cell. Equal numbers have equal texts.
func cellText(value any) string {
	text := fmt.Sprint(value)
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return text
}

// parseRecords reads a table with at least one row.
func parseRecords(path string, text []byte) (out []record, err error) {
	all, err := files.NewCSVReader(path, bytes.NewReader(text)).ReadAll()
	if err == nil && len(all) < 2 {
		err = fmt.Errorf("%s: no row", path)
	}
	if err != nil {
		return nil, err
	}
	for i, row := range all[1:] {
		r := record{fmt.Sprintf("%s: row %d", path, i+1), map[string]string{}, false}
		for j, column := range all[0] {
			r.cells[column] = cellText(row[j])
		}
		out = append(out, r)
	}
	return out, nil
}

// number returns the sum of some columns.
func (r *record) number(columns ...string) (float64, error) {
	sum := 0.0
	for _, column := range columns {
		text, ok := r.cells[column]
		switch {
		case !ok && r.json:
			continue
		case !ok:
			return 0, fmt.Errorf("%s: no column %q", r.where, column)
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %s = %q: want a number", r.where, column, text)
		}
		sum += v
	}
	return sum, nil
}

// texts returns some columns separated by spaces. A missing column is empty.
func (r *record) texts(columns string) string {
	var all []string
	for _, column := range strings.Fields(columns) {
		all = append(all, r.cells[column])
	}
	return strings.Join(all, " ")
}

// seeds returns the seed of a run, or the seeds of a search.
func (r *record) seeds() (all []uint64) {
	for _, text := range strings.Fields(r.texts("seed seeds")) {
		if seed, err := strconv.ParseUint(text, 10, 64); err == nil {
			all = append(all, seed)
		}
	}
	return all
}

// quantity is a number of a row; figures.toml explains the keys.
type quantity struct {
	Of, Over, Low, High string
	Scale, Offset, Most float64
	Label               string
	Log                 bool
}

// value returns the quantity of a row.
func (q *quantity) value(r *record) (float64, error) {
	v, err := r.number(strings.Fields(q.Of)...)
	if err == nil && q.Over != "" {
		var over float64
		over, err = r.number(strings.Fields(q.Over)...)
		v /= over
	}
	return cmp.Or(q.Scale, 1) * (v + q.Offset), err
}

// results caches the results that claims are measured on, without the seed left, if set.
type results struct {
	dir  string
	left *uint64
	read map[string][]record // by experiment
}

func newResults(dir string) *results { return &results{dir: dir, read: map[string][]record{}} }

// rows returns the rows of a measurement, without the seed left.
func (r *results) rows(m *measurement) (some []*record, err error) {
	for i, name := range m.From {
		all, err := r.rowsOf(name)
		if err != nil {
			return nil, err
		}
		for j := range all {
			row := &all[j]
			left := r.left != nil && row.cells["seed"] == strconv.FormatUint(*r.left, 10)
			rate, err := row.number("rate")
			if late := m.Until != nil && err == nil && rate > m.Until[i]; !left && !late {
				some = append(some, row)
			}
		}
	}
	return some, nil
}

// rowsOf returns the rows of an experiment, tagged with its name.
func (r *results) rowsOf(name string) ([]record, error) {
	if rows, ok := r.read[name]; ok {
		return rows, nil
	}
	rows, err := readRecords(filepath.Join(r.dir, name))
	for i := range rows {
		rows[i].cells["experiment"] = name
	}
	if err == nil {
		r.read[name] = rows
	}
	return rows, err
}

// seeds lists the seeds that all the experiments have in common.
func (r *results) seeds(names []string) (seeds []uint64, err error) {
	for i, name := range names {
		rows, err := r.rowsOf(name)
		if err != nil {
			return nil, err
		}
		var own []uint64
		for j := range rows {
			own = append(own, rows[j].seeds()...)
		}
		slices.Sort(own)
		own = slices.Compact(own)
		if i > 0 {
			own = slices.DeleteFunc(own, func(s uint64) bool { return !slices.Contains(seeds, s) })
		}
		seeds = own
	}
	return seeds, nil
}

// metric returns a metric of a row. A goodput is the goodput by the mean over seeds. With a seed
// left out it is the mean of the other seeds' own goodputs, so the interval is over the seeds' own
// goodputs.
func (r *results) metric(name string, row *record) (float64, error) {
	own := strings.Fields(row.cells["seed_goodputs"])
	if name != "goodput" || r.left == nil || len(own) != len(row.seeds()) {
		return figuresBook().Metric[name].value(row)
	}
	var others []float64
	var bad error
	for i, seed := range row.seeds() {
		if v, err := strconv.ParseFloat(own[i], 64); seed != *r.left {
			others, bad = append(others, v), cmp.Or(bad, err)
		}
	}
	return stat.Mean(others, nil), bad
}
