package papers

import (
	"cmp"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"
)

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
