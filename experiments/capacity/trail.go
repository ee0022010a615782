package capacity

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/sparseserve/sparseserve/experiments/run"
)

// Files of a plan's folder.
const (
	PlanFile  = "plan.json"
	trailFile = "trail.csv"
)

// WritePlan writes what was found, and every rate that was tried on the way:
//
//	plan.json   one object a candidate
//	trail.csv   one row a run, and one for the mean over seeds
//
// It returns the names of the files.
func WritePlan(dir string, found []Goodput) ([]string, error) {
	text, err := json.MarshalIndent(found, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := run.ClearLeft(dir, PlanFile, trailFile); err != nil {
		return nil, err
	}
	plan, table := filepath.Join(dir, PlanFile), filepath.Join(dir, trailFile)
	if err := run.WriteFile(plan, append(text, '\n')); err != nil {
		return nil, run.KeptWhenFull(err)
	}
	return []string{plan, table}, run.KeptWhenFull(run.WriteFile(table, trailTable(found)))
}

// trailTable lists every trial in the order of the search. A row whose seed is
// "mean" has the verdict on the rows before it.
func trailTable(found []Goodput) []byte {
	table := run.NewTable("candidate", "stage", "rate", "seed", "tbt_p99_s", "tbt_limit_s",
		"queue_delay_s", "queue_delay_limit_s", "unstable", "completed", "holds", "hash")
	for i := range found {
		g := &found[i]
		slo := g.search.slo
		row := func(t *Trial, seed any, holds bool) {
			table.Add(g.Name, t.Stage, t.Rate, seed, t.TBTP99S, slo.tbtS,
				t.DelayS, slo.delayS, t.Unstable, t.Completed, holds, t.Hash)
		}
		single := func(t *Trial) { row(t, t.Seed, len(slo.why([]Trial{*t})) == 0) }
		for _, rate := range g.search.rates() {
			trials := g.search.at(rate)
			for i := range trials {
				single(&trials[i])
			}
			mean := meanTrial(trials)
			row(&mean, "mean", len(slo.why(trials)) == 0)
		}
		for _, seed := range g.Seeds {
			for _, t := range g.search.own[seed] {
				single(&t)
			}
		}
	}
	return table.Bytes()
}

// meanTrial is what the verdict on a rate is made from.
func meanTrial(trials []Trial) Trial {
	mean := Trial{Stage: trials[0].Stage, Rate: trials[0].Rate}
	unstable := 0
	for _, t := range trials {
		n := float64(len(trials))
		mean.TBTP99S += t.TBTP99S / n
		mean.DelayS += t.DelayS / n
		mean.ThroughputTokS += t.ThroughputTokS / n
		mean.Completed += t.Completed
		if t.Unstable {
			unstable++
		}
	}
	mean.Unstable = 2*unstable >= len(trials)
	return mean
}
