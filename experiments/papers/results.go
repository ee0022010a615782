package papers

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/experiments"
	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim"
)

// results are the results that claims are measured on, read once. The seed
// left, if any, is left out.
type results struct {
	dir  string
	left *uint64
	read map[string][]*row // by experiment
}

// row is a run, what a goodput search found for a system, or a row of a table.
type row struct {
	cells   map[string]string // what filters compare
	seeds   []uint64
	run     *sim.Summary
	goodput *capacity.Goodput
}

func newResults(dir string) *results { return &results{dir: dir, read: map[string][]*row{}} }

// rows returns the rows that a measurement reads, without the seed left.
func (r *results) rows(m *measurement) (some []*row, err error) {
	for i, name := range m.From {
		all, err := r.rowsOf(name)
		if err != nil {
			return nil, err
		}
		for _, row := range all {
			left := r.left != nil && row.goodput == nil && slices.Contains(row.seeds, *r.left)
			late := m.Until != nil && row.run != nil && row.run.Rate > m.Until[i]
			if !left && !late {
				some = append(some, row)
			}
		}
	}
	return some, nil
}

// rowsOf returns the rows of an experiment.
func (r *results) rowsOf(name string) ([]*row, error) {
	if rows, ok := r.read[name]; ok {
		return rows, nil
	}
	read := readTable
	switch e, _ := experiments.Named(name); e.Command {
	case "sweep":
		read = readRuns
	case "plan":
		read = readPlan
	}
	rows, err := read(filepath.Join(r.dir, name))
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		row.cells["experiment"] = name
	}
	r.read[name] = rows
	return rows, nil
}

// readRuns reads the runs of a sweep: cells are the system, the rate and what the axes set.
func readRuns(folder string) (rows []*row, err error) {
	var runs []struct {
		sim.Summary
		Settings map[string]any `json:"settings"`
	}
	err = files.ReadJSON(filepath.Join(folder, run.SummaryFile), &runs)
	for i := range runs {
		s := &runs[i].Summary
		cells := texts(runs[i].Settings)
		cells["system"], cells["rate"] = s.System, text(s.Rate)
		rows = append(rows, &row{cells: cells, seeds: []uint64{s.Seed}, run: s})
	}
	return rows, err
}

// readPlan reads the candidates of a goodput search: cells are the system and the axes.
func readPlan(folder string) (rows []*row, err error) {
	var found []capacity.Goodput
	err = files.ReadJSON(filepath.Join(folder, capacity.PlanFile), &found)
	for i := range found {
		g := &found[i]
		cells := texts(g.Axes)
		cells["system"] = g.System
		rows = append(rows, &row{cells: cells, seeds: g.Seeds, goodput: g})
	}
	return rows, err
}

// readTable reads the table of an experiment that serves no requests: cells are its columns.
func readTable(folder string) (rows []*row, err error) {
	path := filepath.Join(folder, tableFile)
	text, err := files.ReadResult(path)
	if err != nil {
		return nil, err
	}
	lines, err := files.NewCSVReader(path, bytes.NewReader(text)).ReadAll()
	if err != nil {
		return nil, err
	}
	for _, line := range lines[min(1, len(lines)):] {
		r := &row{cells: map[string]string{}}
		for i, column := range lines[0] {
			r.cells[column] = line[i]
		}
		if seed, err := strconv.ParseUint(r.cells["seed"], 10, 64); err == nil {
			r.seeds = []uint64{seed}
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// seeds lists the seeds that all the experiments have run with.
func (r *results) seeds(names []string) (seeds []uint64, err error) {
	for i, name := range names {
		rows, err := r.rowsOf(name)
		if err != nil {
			return nil, err
		}
		var own []uint64
		for _, row := range rows {
			own = append(own, row.seeds...)
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

// takes says that a row has the filter's values.
func (f filter) takes(r *row) bool {
	for key, want := range f {
		permitted, ok := want.([]any)
		if !ok {
			permitted = []any{want}
		}
		has, ok := r.cells[key]
		if !ok || !slices.ContainsFunc(permitted, func(v any) bool { return text(v) == has }) {
			return false
		}
	}
	return true
}

// String writes a filter as claims.toml does.
func (f filter) String() string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(f)) {
		parts = append(parts, fmt.Sprintf("%s = %s", key, text(f[key])))
	}
	return strings.Join(parts, ", ")
}

func texts(values map[string]any) map[string]string {
	cells := map[string]string{}
	for key, v := range values {
		cells[key] = text(v)
	}
	return cells
}

// text writes a value of TOML or JSON, numbers without an exponent.
func text(v any) string {
	if x, ok := v.(float64); ok {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}
