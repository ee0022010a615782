package validate

import (
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/sim/metrics"
)

// Comparison is one figure of a run, live and simulated. Error is relative, simulated over live
// minus 1; nil if live is 0 and simulated is not.
//
// For steps, simulated is the modelled time of the live run's batches:
//
//	step_KIND_mean_s          mean time, and the error of the sum
//	step_KIND_ratio           mean ratio, live is 1
//	step_KIND_abs_error_p50   median and 95th percentile of |ratio - 1|: the error
//	phase_KIND_PHASE_s        seconds in all steps that the live device split
//
// KIND is decode, for steps without a prefill, or mixed.
type Comparison struct {
	Run       string   `json:"run"`
	Metric    string   `json:"metric"`
	Live      float64  `json:"live"`
	Simulated float64  `json:"simulated"`
	Error     *float64 `json:"error"`
}

func compare(run, metric string, live, simulated float64) Comparison {
	return Comparison{Run: run, Metric: metric, Live: live, Simulated: simulated,
		Error: relativeError(live, simulated)}
}

// relativeError returns simulated over real minus 1; 0 if both are 0, nil if only real is 0.
func relativeError(real, simulated float64) *float64 {
	switch {
	case real != 0:
		e := simulated/real - 1
		return &e
	case simulated == 0:
		return new(float64)
	}
	return nil
}

// measured returns a comparison whose error is measured directly.
func measured(run, metric string, e float64) Comparison {
	return Comparison{Run: run, Metric: metric, Simulated: e, Error: &e}
}

// compareSummaries compares the user-visible figures of a run.
func compareSummaries(run string, live, simulated *metrics.Summary) []Comparison {
	var out []Comparison
	for _, m := range metrics.AllOf("ttft_mean", "ttft_p50", "ttft_p99", "tbt_mean", "tbt_p50",
		"tbt_p99", "throughput", "delay_mean", "loads", "hits") {
		name := m.File
		if m.Key == "delay_mean" {
			name = "queue_delay_mean_s"
		}
		l, _ := m.Of(live)
		s, _ := m.Of(simulated)
		out = append(out, compare(run, name, l, s))
	}
	out = append(out, compare(run, "steps", float64(live.Steps), float64(simulated.Steps)))
	if l, s := live.ProgressiveStats, simulated.ProgressiveStats; l != nil && s != nil {
		out = append(out, compare(run, "rounds_per_layer", l.RoundsPerLayer, s.RoundsPerLayer),
			compare(run, "blocks_ahead_per_step", float64(l.BlocksAhead)/float64(live.Steps),
				float64(s.BlocksAhead)/float64(simulated.Steps)))
	}
	return out
}

// GoalShare is the share of runs below saturation that must meet every goal.
const GoalShare = 0.8

// Goals returns the largest errors that a validation permits for runs below saturation.
func Goals() map[string]float64 {
	return map[string]float64{
		"ttft_mean_s": 0.08, "tbt_mean_s": 0.08, "throughput_tok_s": 0.08,
		"ttft_p99_s": 0.15, "tbt_p99_s": 0.15, "blocks_loaded_per_step": 0.05,
	}
}

// Of returns a figure of the run.
func (r *ValidatedRun) Of(metric string) (c Comparison, ok bool) {
	i := slices.IndexFunc(r.Comparisons, func(c Comparison) bool { return c.Metric == metric })
	if i < 0 {
		return c, false
	}
	return r.Comparisons[i], true
}

// Misses lists the figures whose error exceeds its goal, in the order of the comparisons.
func (r *ValidatedRun) Misses() []string {
	goals := Goals()
	var missed []string
	for _, c := range r.Comparisons {
		if goal, ok := goals[c.Metric]; ok && (c.Error == nil || math.Abs(*c.Error) > goal) {
			missed = append(missed, c.Metric)
		}
	}
	return missed
}

// Worst returns the largest ratio of an error to its goal.
func (r *ValidatedRun) Worst() float64 {
	goals, worst := Goals(), 0.0
	for _, c := range r.Comparisons {
		if goal, ok := goals[c.Metric]; ok {
			if c.Error == nil {
				return math.Inf(1)
			}
			worst = max(worst, math.Abs(*c.Error)/goal)
		}
	}
	return worst
}

// Swap is a pair of systems that the simulation orders differently than the live runs.
type Swap struct {
	Metric        string
	First, Second *ValidatedRun // live, First is better
}

// tie is the relative difference below which two live runs have no order.
const tie = 0.01

// Swaps compares the order of systems at one load, by mean TTFT and by throughput. pairs is the
// number of pairs with an order.
func Swaps(runs []ValidatedRun) (swaps []Swap, pairs int) {
	for _, m := range metrics.AllOf("ttft_mean", "throughput") {
		cost := func(s *metrics.Summary) float64 { // lower is better
			v, _ := m.Of(s)
			if m.Higher {
				return 1 / v
			}
			return v
		}
		for i := range runs {
			for j := range runs {
				a, b := &runs[i], &runs[j]
				if a.Variant != b.Variant || a.Model != b.Model || a.Rate != b.Rate || a.Seed != b.Seed ||
					cost(&a.Live)*(1+tie) >= cost(&b.Live) { // a is not clearly the better one
					continue
				}
				pairs++
				if cost(&a.Simulated) >= cost(&b.Simulated) {
					swaps = append(swaps, Swap{m.File, a, b})
				}
			}
		}
	}
	return swaps, pairs
}
