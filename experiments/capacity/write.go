package capacity

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/run"
)

// Files of a purchase's folder besides trailFile.
const (
	PurchaseFile   = "purchase.json"
	CandidatesFile = "candidates.csv"
	ChoiceFile     = "choice.toml"
)

// Write writes the answer into a folder:
//
//	purchase.json   all of it
//	candidates.csv  one row a candidate, the cheapest first
//	trail.csv       one row a run
//	choice.toml     the choice under its load, as simulate takes it, if there is one
//
// It returns the paths of the files.
func (a *Purchase) Write(dir string) ([]string, error) {
	text, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return nil, err
	}
	texts := map[string][]byte{
		PurchaseFile:   append(text, '\n'),
		CandidatesFile: a.candidates(),
		trailFile:      a.trail(),
	}
	names := []string{PurchaseFile, CandidatesFile, trailFile}
	if a.Choice != nil {
		if texts[ChoiceFile], err = a.point.TOML(); err != nil {
			return nil, err
		}
		names = append(names, ChoiceFile)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := run.ClearLeft(dir, PurchaseFile, CandidatesFile, trailFile, ChoiceFile); err != nil {
		return nil, err
	}
	if err := remove(dir, ChoiceFile, PlanFile); err != nil {
		return nil, err
	}
	var paths []string
	for _, name := range names {
		path := filepath.Join(dir, name)
		if err := run.WriteFile(path, texts[name]); err != nil {
			return paths, run.KeptWhenFull(err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// remove removes files of an answer of before that the new one may not have.
func remove(dir string, names ...string) error {
	for _, name := range names {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// candidates lists the candidates. What is not known of one is empty.
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

// known is a number, or nothing where it is 0.
func known[T int | float64](x T) any {
	if x == 0 {
		return ""
	}
	return x
}

// trail lists every run in the order of the candidates. A run that ended as soon as its outcome was
// known has no values.
func (a *Purchase) trail() []byte {
	table := run.NewTable("candidate", "stage", "replicas", "load", "requests", "seed", "bounds",
		"rejected_share", "missed_share", "unstable", "completed", "holds", "ended_early_by", "hash")
	for _, o := range a.options {
		for _, r := range o.runs {
			holds := r.holds()
			for i := range r.trials {
				t := &r.trials[i]
				bounds := ""
				if t.Cut == "" {
					bounds = boundsText(r.slo.bounds, t.Bounded)
				}
				table.Add(o.Label, r.stage, r.replicas, r.load, r.requests, t.Seed, bounds, t.Rejected,
					t.Missed, t.Unstable, t.Completed, holds, t.Cut, t.Hash)
			}
		}
	}
	return table.Bytes()
}

// Interval returns Low and High, or the goodput twice where there are none.
func (g *Goodput) Interval() (low, high float64) {
	if g.Low == nil {
		return g.Goodput, g.Goodput
	}
	return *g.Low, *g.High
}
