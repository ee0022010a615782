package papers

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim"
)

// results are the results that claims are measured on, read once. The seed
// left, if any, is left out.
type results struct {
	dir    string
	left   *uint64
	runs   map[string][]sweptRun
	tables map[string][]map[string]string
	plans  map[string][]capacity.Goodput
}

// sweptRun is one object of a sweep's summary.json.
type sweptRun struct {
	sim.Summary
	Settings map[string]any `json:"settings"` // what the axes set
}

func newResults(dir string) *results {
	return &results{dir: dir, runs: map[string][]sweptRun{}, tables: map[string][]map[string]string{},
		plans: map[string][]capacity.Goodput{}}
}

// served returns the runs of an experiment that serves requests.
func (r *results) served(name string) ([]sweptRun, error) {
	if r.runs[name] == nil {
		var runs []sweptRun
		if err := files.ReadJSON(filepath.Join(r.dir, name, run.SummaryFile), &runs); err != nil {
			return nil, err
		}
		r.runs[name] = runs
	}
	var some []sweptRun
	for _, run := range r.runs[name] {
		if r.left == nil || run.Seed != *r.left {
			some = append(some, run)
		}
	}
	return some, nil
}

// plan returns the candidates of a goodput search.
func (r *results) plan(name string) ([]capacity.Goodput, error) {
	if r.plans[name] == nil {
		var found []capacity.Goodput
		if err := files.ReadJSON(filepath.Join(r.dir, name, capacity.PlanFile), &found); err != nil {
			return nil, err
		}
		r.plans[name] = found
	}
	return r.plans[name], nil
}

// table returns the rows of an experiment that serves none, by column.
func (r *results) table(name string) ([]map[string]string, error) {
	if r.tables[name] == nil {
		path := filepath.Join(r.dir, name, tableFile)
		text, err := files.ReadResult(path)
		if err != nil {
			return nil, err
		}
		all, err := files.NewCSVReader(path, bytes.NewReader(text)).ReadAll()
		if err != nil {
			return nil, err
		}
		for _, row := range all[min(1, len(all)):] {
			cells := map[string]string{}
			for i, column := range all[0] {
				cells[column] = row[i]
			}
			r.tables[name] = append(r.tables[name], cells)
		}
	}
	var some []map[string]string
	for _, row := range r.tables[name] {
		if seed, ok := row["seed"]; !ok || r.left == nil || seed != strconv.FormatUint(*r.left, 10) {
			some = append(some, row)
		}
	}
	return some, nil
}

// column returns the numbers of one column, of the rows that have these texts in others.
func (r *results) column(name, column string, where map[string]string) ([]float64, error) {
	rows, err := r.table(name)
	if err != nil {
		return nil, err
	}
	var numbers []float64
	for _, row := range rows {
		if slices.ContainsFunc(slices.Collect(maps.Keys(where)),
			func(k string) bool { return row[k] != where[k] }) {
			continue
		}
		v, err := strconv.ParseFloat(row[column], 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		numbers = append(numbers, v)
	}
	if len(numbers) == 0 {
		return nil, fmt.Errorf("%s: no row with %v", name, where)
	}
	return numbers, nil
}

// seeds lists the seeds that all the experiments have run with.
func (r *results) seeds(names []string) ([]uint64, error) {
	var seeds []uint64
	for i, name := range names {
		own, err := r.seedsOf(name)
		if err != nil {
			return nil, err
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

func (r *results) seedsOf(name string) (seeds []uint64, err error) {
	has := func(file string) bool {
		_, err := os.Stat(filepath.Join(r.dir, name, file))
		return err == nil
	}
	switch {
	case has(capacity.PlanFile):
		found, err := r.plan(name)
		for i := range found {
			seeds = append(seeds, found[i].Seeds...)
		}
		return seeds, err
	case has(tableFile):
		rows, err := r.table(name)
		for _, row := range rows {
			if seed, err := strconv.ParseUint(row["seed"], 10, 64); err == nil {
				seeds = append(seeds, seed)
			}
		}
		return seeds, err
	}
	runs, err := r.served(name)
	for _, run := range runs {
		seeds = append(seeds, run.Seed)
	}
	return seeds, err
}

// filter says which runs count.
type filter func(*sweptRun) bool

func (f filter) and(g filter) filter { return func(r *sweptRun) bool { return f(r) && g(r) } }

func system(name string) filter { return func(r *sweptRun) bool { return r.System == name } }
func atRate(x float64) filter   { return func(r *sweptRun) bool { return r.Rate == x } }

// with keeps the runs in which the axes set key to value.
func with(key string, value any) filter {
	return func(r *sweptRun) bool {
		if n, ok := value.(int); ok {
			return r.Settings[key] == float64(n)
		}
		return r.Settings[key] == value
	}
}

// mean is the mean of a quantity over the runs that count.
func (r *results) mean(name string, f filter, of func(*sweptRun) float64) (float64, error) {
	runs, err := r.served(name)
	if err != nil {
		return 0, err
	}
	sum, n := 0.0, 0
	for i := range runs {
		if f(&runs[i]) {
			sum += of(&runs[i])
			n++
		}
	}
	if n == 0 {
		return 0, fmt.Errorf("%s: no run to measure on", name)
	}
	return sum / float64(n), nil
}

// ratio is the ratio of two means of one quantity.
func (r *results) ratio(name string, over, under filter, of func(*sweptRun) float64) (
	float64, error) {
	a, err := r.mean(name, over, of)
	if err != nil {
		return 0, err
	}
	b, err := r.mean(name, under, of)
	if err != nil {
		return 0, err
	}
	if b == 0 {
		return 0, fmt.Errorf("%s: a mean of 0 to divide by", name)
	}
	return a / b, nil
}

// largestRatio is the largest ratio of two means at one rate, over the rates
// up to a cap at which both have runs.
func (r *results) largestRatio(name string, over, under filter, of func(*sweptRun) float64,
	limit float64) (float64, error) {
	runs, err := r.served(name)
	if err != nil {
		return 0, err
	}
	best := math.Inf(-1)
	var rates []float64
	for i := range runs {
		if under(&runs[i]) && runs[i].Rate <= limit && !slices.Contains(rates, runs[i].Rate) {
			rates = append(rates, runs[i].Rate)
		}
	}
	for _, rate := range rates {
		v, err := r.ratio(name, over.and(atRate(rate)), under.and(atRate(rate)), of)
		if err != nil {
			return 0, err
		}
		best = math.Max(best, v)
	}
	if math.IsInf(best, 0) {
		return 0, fmt.Errorf("%s: no rate to compare at", name)
	}
	return best, nil
}
