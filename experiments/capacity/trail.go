package capacity

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/stats"
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
		all := g.search.shared
		for _, seed := range g.Seeds {
			all = slices.Concat(all, g.search.own[seed])
		}
		for _, a := range all {
			row := func(t *Trial, seed any, holds bool) {
				table.Add(g.Name, a.stage, a.load, seed, boundsText(slo.bounds, t.Bounded), t.Rejected,
					t.Missed, t.Unstable, t.Completed, holds, t.Hash)
			}
			for _, t := range a.trials {
				row(&t, t.Seed, slo.holds([]Trial{t}))
			}
			if a.stage != stageSeed {
				mean := a.mean()
				row(&mean, "mean", a.holds())
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
		words[i] = fmt.Sprintf("%s_%s=%s/%s", b.Name, b.Stat, stats.Exact(values[i]),
			stats.Exact(b.Limit))
	}
	return strings.Join(words, "; ")
}
