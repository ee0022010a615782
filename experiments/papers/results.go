package papers

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/stat"

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
	cells   map[string]any // what filters compare
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

// rowsOf returns the rows of an experiment: the runs of a sweep, the candidates of a goodput
// search, or the rows of a table.
func (r *results) rowsOf(name string) (rows []*row, err error) {
	if rows, ok := r.read[name]; ok {
		return rows, nil
	}
	folder := filepath.Join(r.dir, name)
	switch e, _ := experiments.Named(name); e.Command {
	case "sweep":
		var runs []struct {
			sim.Summary
			Settings map[string]any `json:"settings"`
		}
		err = files.ReadJSON(filepath.Join(folder, run.SummaryFile), &runs)
		for i := range runs {
			s := &runs[i].Summary
			cells := map[string]any{"system": s.System, "rate": s.Rate}
			maps.Copy(cells, runs[i].Settings)
			rows = append(rows, &row{cells, []uint64{s.Seed}, s, nil})
		}
	case "goodput":
		var found []capacity.Goodput
		err = files.ReadJSON(filepath.Join(folder, capacity.PlanFile), &found)
		for i := range found {
			cells := map[string]any{"system": found[i].System}
			maps.Copy(cells, found[i].Axes)
			rows = append(rows, &row{cells, found[i].Seeds, nil, &found[i]})
		}
	default:
		rows, err = readTable(filepath.Join(folder, tableFile))
	}
	for _, row := range rows {
		row.cells["experiment"] = name
	}
	if err == nil {
		r.read[name] = rows
	}
	return rows, err
}

// readTable reads the table of an experiment that serves no requests.
func readTable(path string) (rows []*row, err error) {
	text, err := files.ReadResult(path)
	if err != nil {
		return nil, err
	}
	lines, err := files.NewCSVReader(path, bytes.NewReader(text)).ReadAll()
	if err != nil {
		return nil, err
	}
	for _, line := range lines[min(1, len(lines)):] {
		r := &row{cells: map[string]any{}}
		for i, column := range lines[0] {
			r.cells[column] = line[i]
		}
		if seed, err := strconv.ParseUint(r.text("seed"), 10, 64); err == nil {
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

// text is the row's value of a key, "" where it has none.
func (r *row) text(key string) string {
	if v, ok := r.cells[key]; ok {
		return text(v)
	}
	return ""
}

// text writes a value of TOML, JSON or CSV, numbers without an exponent.
func text(v any) string {
	if x, ok := v.(float64); ok {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}

// metrics are the quantities of a row that claims.toml can name. left is the seed that is left
// out, or nil; only goodput, which is found over all seeds, depends on it.
var metrics = map[string]func(r *row, left *uint64) (float64, error){
	"throughput_tok_s": ofRun(func(s *sim.Summary) float64 { return s.ThroughputTokS }),
	"ttft_mean_s":      ofRun(func(s *sim.Summary) float64 { return s.TTFT.Mean }),
	"tbt_mean_s":       ofRun(func(s *sim.Summary) float64 { return s.TBT.Mean }),
	"blocks_loaded_per_step": ofRun(func(s *sim.Summary) float64 {
		return s.BlocksLoadedPerStep
	}),
	"prefill_attention_s": ofRun(func(s *sim.Summary) float64 {
		return s.PhaseS["prefill_attention"]
	}),
	"load_s_per_step": ofRun(func(s *sim.Summary) float64 {
		return s.PhaseS["load_stall"] / float64(s.Steps)
	}),
	"load_share": ofRun(loadShare),

	"goodput": goodput,

	"gb_s":     sumOf("gb_s"),
	"overlap":  sumOf("overlap"),
	"kv_share": sumOf("kv_share"),
	"seconds":  sumOf("seconds"),
	"sparsity": sumOf("sparsity"),
	"head_ms":  sumOf("kernel_ms", "index_ms"),
	"index_share": func(r *row, _ *uint64) (float64, error) {
		index, err := r.sum("index_ms")
		if err != nil {
			return 0, err
		}
		all, err := r.sum("kernel_ms", "index_ms")
		return index / all, err
	},
}

// ofRun is a quantity of a run that served requests.
func ofRun(of func(*sim.Summary) float64) func(*row, *uint64) (float64, error) {
	return func(r *row, _ *uint64) (float64, error) {
		if r.run == nil {
			return 0, fmt.Errorf("the experiment has no runs")
		}
		return of(r.run), nil
	}
}

// loadShare is the share of the steps' time spent waiting for loads.
func loadShare(s *sim.Summary) float64 {
	total := 0.0
	for _, name := range slices.Sorted(maps.Keys(s.PhaseS)) {
		total += s.PhaseS[name]
	}
	return s.PhaseS["load_stall"] / total
}

// goodput is that of the mean over seeds. With a seed left out it is the mean of the others' own,
// so that the interval is that of the seeds' own.
func goodput(r *row, left *uint64) (float64, error) {
	if r.goodput == nil {
		return 0, fmt.Errorf("the experiment searches no goodput")
	}
	if left == nil {
		return r.goodput.Goodput, nil
	}
	var own []float64
	for j, seed := range r.goodput.Seeds {
		if seed != *left {
			own = append(own, r.goodput.SeedGoodputs[j])
		}
	}
	return stat.Mean(own, nil), nil
}

// sumOf is the sum of columns of a table.
func sumOf(columns ...string) func(*row, *uint64) (float64, error) {
	return func(r *row, _ *uint64) (float64, error) { return r.sum(columns...) }
}

func (r *row) sum(columns ...string) (sum float64, err error) {
	for _, column := range columns {
		v, err := strconv.ParseFloat(r.text(column), 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", column, err)
		}
		sum += v
	}
	return sum, nil
}
