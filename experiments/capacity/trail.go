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

// trail is a table of trials, with columns of what was tried before those of the outcome.
type trail struct{ *run.Table }

func newTrail(tried ...string) trail {
	return trail{run.NewTable(append(tried, "seed", "bounds", "rejected_share", "missed_share",
		"unstable", "completed", "holds", "hash")...)}
}

// add adds a trial of an attempt, or the mean of all.
func (t trail) add(a *attempt, of *Trial, seed any, holds bool, tried ...any) {
	t.Add(append(tried, seed, boundsText(a.slo.bounds, of.Bounded), of.Rejected, of.Missed,
		of.Unstable, of.Completed, holds, of.Hash)...)
}

// trailTable lists every trial in the order of the search. A row whose seed is
// "mean" has the outcome on the rows before it.
func trailTable(found []Goodput) []byte {
	table := newTrail("candidate", "stage", "rate")
	for i := range found {
		g := &found[i]
		all := g.search.shared
		for _, seed := range g.Seeds {
			all = slices.Concat(all, g.search.own[seed])
		}
		for _, a := range all {
			for _, t := range a.trials {
				table.add(a, &t, t.Seed, a.slo.holds([]Trial{t}), g.Name, a.stage, a.load)
			}
			if a.stage != stageSeed {
				mean := a.mean()
				table.add(a, &mean, "mean", a.holds(), g.Name, a.stage, a.load)
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
