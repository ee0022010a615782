package capacity

import (
	"strings"

	"github.com/sparseserve/sparseserve/experiments/run"
)

// Files of a purchase's folder besides trailFile.
const (
	PurchaseFile   = "purchase.json"
	CandidatesFile = "candidates.csv"
	ChoiceFile     = "choice.toml"
)

// Files returns the files of the answer:
//
//	purchase.json   the whole answer
//	candidates.csv  one row per candidate, cheapest first
//	trail.csv       one row per run
//	choice.toml     the choice under its load, as input for simulate, if there is one
func (a *Purchase) Files() ([]run.File, error) {
	text, err := run.Marshal(a)
	if err != nil {
		return nil, err
	}
	all := []run.File{{Name: PurchaseFile, Text: text}, {Name: CandidatesFile, Text: a.candidates()},
		{Name: trailFile, Text: a.trail()}}
	if a.Choice == nil {
		return all, nil
	}
	choice, err := a.point.TOML()
	return append(all, run.File{Name: ChoiceFile, Text: choice}), err
}

// candidates lists the candidates. Unknown values are empty.
func (a *Purchase) candidates() []byte {
	table := run.NewTable("candidate", "system", "engine", "model", "gpu", "gpus_per_replica",
		"step_tokens", "usd_per_gpu_hour", "price_of", "price_date", "outcome", "replicas", "gpus",
		"usd_per_hour", "usd_per_million_input_tokens", "usd_per_million_output_tokens",
		"usd_per_million_total_tokens", "throughput_tok_s", "largest_load", "headroom", "nearest_limit",
		"nearest_share", "next_limit", "next_share", "short_of", "runs", "reason")
	for i := range a.Candidates {
		c := &a.Candidates[i]
		row := []any{c.Name, c.System, c.Engine, c.Model, c.GPU, known(c.GPUsPerReplica),
			known(c.StepTokens), known(c.Price.USDPerHour), c.Price.Provider, c.Price.Date, c.Outcome,
			known(c.Replicas), known(c.GPUs), known(c.USDPerHour), known(c.USDPerMInput),
			known(c.USDPerMOutput), known(c.USDPerMTotal), known(c.ThroughputTokS), c.Largest, c.Headroom}
		for j := range 2 {
			if j < len(c.Limits) {
				row = append(row, c.Limits[j].Name, c.Limits[j].Of)
			} else {
				row = append(row, "", "")
			}
		}
		table.Add(append(row, strings.Join(c.Short, "; "), c.Runs, c.Reason)...)
	}
	return table.Bytes()
}

// known returns x, or "" if x is 0.
func known[T int | float64](x T) any {
	if x == 0 {
		return ""
	}
	return x
}

// trail lists every run in the order of the candidates.
func (a *Purchase) trail() []byte {
	table := newTrail("candidate", "stage", "replicas", "load", "requests")
	for _, o := range a.options {
		for _, r := range o.runs {
			holds := r.holds()
			for i := range r.trials {
				t := &r.trials[i]
				table.add(r, t, t.Seed, holds, o.Label(), r.stage, r.replicas, r.load, r.work.Requests)
			}
		}
	}
	return table.Bytes()
}

// Interval returns Low and High, or the goodput twice if they are nil.
func (g *Goodput) Interval() (low, high float64) {
	if g.Low == nil {
		return g.Goodput, g.Goodput
	}
	return *g.Low, *g.High
}
