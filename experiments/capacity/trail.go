package capacity

import (
	"fmt"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
)

// Files of a folder of goodput.
const (
	GoodputFile = "goodput.json"
	trailFile   = "trail.csv"
)

// GoodputFiles returns the files with the results and every tried rate:
//
//	goodput.json   one object per candidate
//	trail.csv      one row per run, and one for the mean over seeds
func GoodputFiles(found []Goodput) ([]run.File, error) {
	text, err := run.Marshal(found)
	return []run.File{{Name: GoodputFile, Text: text}, {Name: trailFile, Text: trailTable(found)}}, err
}

// trailTable lists every trial in the order of the search. A row whose seed is
// "mean" has the outcome on the rows before it.
func trailTable(found []Goodput) []byte {
	table := run.NewTable("candidate", "stage", "rate", "seed", "bounds", "rejected_share",
		"missed_share", "unstable", "completed", "holds", "hash")
	for i := range found {
		g := &found[i]
		slo := g.search.slo
		row := func(t *Trial, seed any, holds bool) {
			table.Add(g.Name, t.Stage, t.Rate, seed, boundsText(slo.bounds, t.Bounded), t.Rejected,
				t.Missed, t.Unstable, t.Completed, holds, t.Hash)
		}
		single := func(t *Trial) { row(t, t.Seed, slo.holds([]Trial{*t})) }
		for _, rate := range g.search.rates() {
			trials := g.search.at(rate)
			for i := range trials {
				single(&trials[i])
			}
			mean := meanTrial(trials)
			row(&mean, "mean", slo.holds(trials))
		}
		for _, seed := range g.Seeds {
			for _, t := range g.search.own[seed] {
				single(&t)
			}
		}
	}
	return table.Bytes()
}

// boundsText lists each bound's statistic and limit, in seconds, as in
// "tbt_p99=0.04/0.2; delay_mean=1.2/2".
func boundsText(bounds []config.Bound, values []float64) string {
	words := make([]string, len(bounds))
	for i, b := range bounds {
		words[i] = fmt.Sprintf("%s_%s=%s/%s", b.Name, b.Stat, run.Number(values[i]), run.Number(b.Limit))
	}
	return strings.Join(words, "; ")
}

// meanTrial returns the mean over trials, from which the outcome of a rate is derived.
func meanTrial(trials []Trial) Trial {
	mean := Trial{Stage: trials[0].Stage, Rate: trials[0].Rate,
		Bounded: make([]float64, len(trials[0].Bounded))}
	unstable := 0
	for _, t := range trials {
		n := float64(len(trials))
		for i, v := range t.Bounded {
			mean.Bounded[i] += v / n
		}
		mean.Rejected += t.Rejected / n
		mean.Missed += t.Missed / n
		mean.ThroughputTokS += t.ThroughputTokS / n
		mean.e2e += t.e2e / n
		mean.Completed += t.Completed
		if t.Unstable {
			unstable++
		}
	}
	mean.Unstable = 2*unstable >= len(trials)
	return mean
}
