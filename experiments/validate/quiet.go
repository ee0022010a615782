package validate

import (
	"slices"

	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// Figures of a live run without the excess time of decode steps during which the machine stalled.
const (
	stoodStillMetric = "decode_steps_stood_still"
	quietMeanMetric  = "tbt_quiet_mean_s"
	quietP99Metric   = "tbt_quiet_p99_s"
)

// stoodStillAbove is the ratio to the median of similar decode steps above which a step counts as
// stalled. On an undisturbed host steps of the same work are within 1.1 times their median.
const stoodStillAbove = 1.25

// quieted returns the time of each step without stalls of the machine, and the number of stalled
// decode steps. As in alike, live times are divided by the modelled time of the step, and then by
// the median of steps with the same number of decodes, at least minAlike. So the accuracy of the
// model does not matter, unless it is wrong by a quarter for a rare step.
func quieted(steps []Step) (times []float64, stood int) {
	times = make([]float64, len(steps))
	groups := map[int][]float64{}
	judged := func(s *Step) bool {
		return !s.Mixed && s.decodes > 0 && s.Live > 0 && s.Model > 0
	}
	for i := range steps {
		s := &steps[i]
		times[i] = s.Live
		if judged(s) {
			groups[s.decodes] = append(groups[s.decodes], s.Live/s.Model)
		}
	}
	for _, ratios := range groups {
		slices.Sort(ratios)
	}
	for i := range steps {
		s := &steps[i]
		if !judged(s) || len(groups[s.decodes]) < minAlike {
			continue
		}
		usual := stats.Of(groups[s.decodes], 50) * s.Model
		if s.Live > stoodStillAbove*usual {
			times[i] = usual
			stood++
		}
	}
	return times, stood
}

// compareQuiet compares TBT with the live run's TBT without stalls; nothing if no step stalled.
func compareQuiet(run string, live, simulated *sim.Summary, steps []Step) []Comparison {
	times, stood := quieted(steps)
	if stood == 0 {
		return nil
	}
	raw := make([]float64, len(steps))
	for i := range steps {
		raw[i] = steps[i].Live
	}
	rawMean, rawP99 := tokenTimes(steps, raw)
	mean, p99 := tokenTimes(steps, times)
	return []Comparison{
		compare(run, stoodStillMetric, float64(stood), 0),
		compare(run, quietMeanMetric, live.TBT.Mean*mean/rawMean, simulated.TBT.Mean),
		compare(run, quietP99Metric, live.TBT.P99*p99/rawP99, simulated.TBT.P99),
	}
}

// tokenTimes returns the mean and the 99th percentile of step times, weighted by the tokens that
// the steps decode.
func tokenTimes(steps []Step, times []float64) (mean, p99 float64) {
	var all stats.Counts
	sum, tokens := 0.0, 0
	for i := range steps {
		if n := steps[i].decodes; n > 0 {
			all.Add(int64(des.FromSeconds(times[i])), n)
			sum += times[i] * float64(n)
			tokens += n
		}
	}
	if tokens == 0 {
		return 0, 0
	}
	return sum / float64(tokens), all.Percentiles(99)[0] / float64(des.Second)
}
