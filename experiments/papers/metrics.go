package papers

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/stat"

	"github.com/sparseserve/sparseserve/sim"
)

// metrics are the quantities of a row that claims.toml can name. left is the seed that is left
// out, or nil; only goodput, which is found over all seeds, depends on it.
var metrics = map[string]func(r *row, left *uint64) (float64, error){
	"throughput_tok_s": ofRun(func(s *sim.Summary) float64 { return s.ThroughputTokS }),
	"ttft_mean_s":      ofRun(func(s *sim.Summary) float64 { return s.TTFT.Mean }),
	"tbt_mean_s":       ofRun(func(s *sim.Summary) float64 { return s.TBT.Mean }),
	"blocks_loaded_per_step": ofRun(func(s *sim.Summary) float64 {
		return s.BlocksLoadedPerStep
	}),
	"load_s_per_step": ofRun(func(s *sim.Summary) float64 {
		return s.PhaseS["load_stall"] / float64(s.Steps)
	}),
	"load_share": ofRun(loadShare),
	"prefill_attention_s": ofRun(func(s *sim.Summary) float64 {
		return s.PhaseS["prefill_attention"]
	}),

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
		v, err := strconv.ParseFloat(r.cells[column], 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", column, err)
		}
		sum += v
	}
	return sum, nil
}
