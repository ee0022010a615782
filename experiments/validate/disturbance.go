package validate

import (
	"cmp"
	"slices"

	"github.com/sparseserve/sparseserve/internal/stats"
)

// alikeMetric measures how steady the host of a live run was: the ratio of slow steps to the
// median, over steps with the same work.
const alikeMetric = "step_alike_p95_over_p50"

// minAlike is the minimum number of steps in a group with the same number of decodes: the 95th
// percentile of 20 values is the second largest.
const minAlike = 20

// DisturbedAbove is the limit on the 95th percentile over the median of steps with the same work.
// Above it something disturbed the live run: on an undisturbed host the ratio is below 1.2. A host
// that is slow throughout is not detected.
const DisturbedAbove = 1.2

// alike returns how much slower the slow steps of a run are than similar steps. Similar steps only
// decode, load nothing, are not split into phases, and belong to a group of at least minAlike steps
// with the same number of decodes. Each live time is divided by the modelled time of the step,
// because contexts grow, and then by the median of its group. slow is the 95th percentile over all
// groups: 1 if all steps are alike. ok is false if there is no group.
func alike(steps []step) (slow float64, ok bool) {
	groups := map[int][]float64{}
	for i := range steps {
		s := &steps[i]
		if !s.mixed && s.loads == 0 && !s.split && s.live > 0 && s.model > 0 {
			groups[s.decodes] = append(groups[s.decodes], s.live/s.model)
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

// compareAlike compares the ratio of alike with 1, the value of an undisturbed host.
func compareAlike(run string, steps []step) []Comparison {
	slow, ok := alike(steps)
	if !ok {
		return nil
	}
	return []Comparison{compare(run, alikeMetric, slow, 1)}
}

// DisturbedRun is a live run in which steps of the same work differ in time, with the ratio of slow
// steps to the median.
type DisturbedRun struct {
	Run  *ValidatedRun
	Slow float64
}

// Disturbed lists the disturbed live runs, worst first. told is the number of runs with enough
// similar steps to judge.
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
