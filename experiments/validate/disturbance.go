package validate

import (
	"cmp"
	"slices"

	"github.com/sparseserve/sparseserve/internal/stats"
)

// alikeMetric says how steady the host of a live run was: how much longer the
// slow ones of steps of the same work take than the median.
const alikeMetric = "step_alike_p95_over_p50"

// minAlike is how many steps with the same number of decodes make a group: the
// 95th percentile of 20 is their second largest.
const minAlike = 20

// DisturbedAbove is the 95th percentile of steps of the same work, over their median, above which
// something disturbed a live run: runs on an undisturbed host are below 1.2. A host that is slow
// throughout is not detected.
const DisturbedAbove = 1.2

// alike returns how long the slow ones of a run's alike steps take: those that
// only decode, load nothing, were not split into phases, and have a number of
// decodes that minAlike of them have. Live times are over the model's price of
// the same step, since contexts grow, and then over the median of the group; of
// these in all groups it is the 95th percentile, 1 if all are alike. Not ok if
// there is no group.
func alike(steps []Step) (slow float64, ok bool) {
	groups := map[int][]float64{}
	for i := range steps {
		s := &steps[i]
		if !s.Mixed && s.loads == 0 && !s.Split && s.Live > 0 && s.Model > 0 {
			groups[s.decodes] = append(groups[s.decodes], s.Live/s.Model)
		}
	}
	var all []float64
	for _, ratios := range groups {
		if len(ratios) < minAlike {
			continue
		}
		slices.Sort(ratios)
		median := stats.Of(ratios, 50)
		for _, r := range ratios {
			all = append(all, r/median)
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	slices.Sort(all)
	return stats.Of(all, 95), true
}

// compareAlike compares it with 1, that of an undisturbed host.
func compareAlike(run string, steps []Step) []Comparison {
	slow, ok := alike(steps)
	if !ok {
		return nil
	}
	return []Comparison{compare(run, alikeMetric, slow, 1)}
}

// stalledMetric is for how many seconds a live run stood still within steps.
const stalledMetric = "stalled_s"

// A step stalled that takes three times as long as the model has it, and more by at least
// stallAtLeast: the model is wrong by less.
const (
	stallRatio   = 3
	stallAtLeast = 0.03 // s
)

// compareStalls compares the excess time of such steps with 0. None, and there is
// nothing to say.
func compareStalls(run string, steps []Step) []Comparison {
	sum := stalls(steps)
	if sum == 0 {
		return nil
	}
	return []Comparison{compare(run, stalledMetric, sum, 0)}
}

// stalls is for how many seconds a run stood still within steps.
func stalls(steps []Step) (sum float64) {
	for i := range steps {
		if s := &steps[i]; s.Model > 0 && s.Live > stallRatio*s.Model && s.Live > s.Model+stallAtLeast {
			sum += s.Live - s.Model
		}
	}
	return sum
}

// DisturbedRun is a live run whose steps of the same work differ in time, and
// how long the slow ones take, over their median.
type DisturbedRun struct {
	Run  *ValidatedRun
	Slow float64
}

// StalledRun is a live run that stood still within steps, and for how many seconds.
type StalledRun struct {
	Run     *ValidatedRun
	Seconds float64
}

// Stalled lists the live runs that stood still within steps, the longest first.
func Stalled(runs []ValidatedRun) (stalled []StalledRun) {
	for i := range runs {
		if c, ok := runs[i].Of(stalledMetric); ok {
			stalled = append(stalled, StalledRun{&runs[i], c.Live})
		}
	}
	slices.SortStableFunc(stalled, func(a, b StalledRun) int {
		return cmp.Compare(b.Seconds, a.Seconds)
	})
	return stalled
}

// Disturbed lists the live runs that something disturbed, worst first. Told is
// how many runs have enough steps of the same work to judge.
func Disturbed(runs []ValidatedRun) (disturbed []DisturbedRun, told int) {
	for i := range runs {
		c, ok := runs[i].Of(alikeMetric)
		if !ok {
			continue
		}
		told++
		if c.Live > DisturbedAbove {
			disturbed = append(disturbed, DisturbedRun{&runs[i], c.Live})
		}
	}
	slices.SortStableFunc(disturbed, func(a, b DisturbedRun) int {
		return cmp.Compare(b.Slow, a.Slow)
	})
	return disturbed, told
}
