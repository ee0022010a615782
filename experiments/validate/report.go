package validate

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// Files of a validation's result folder.
const (
	validationIndex = "runs.json"
	validationJSON  = "validate.json"
	validationCSV   = "validate.csv"
)

// validationRuns is the content of runs.json: the kept runs to compare.
type validationRuns struct {
	Name   string          `json:"name"`
	Device string          `json:"device"`
	Runs   []validationRun `json:"runs"`
}

// validationRun names a run and its files, as paths from the result folder.
type validationRun struct {
	Run       string  `json:"run"`
	System    string  `json:"system"`
	Model     string  `json:"model"`
	GPU       string  `json:"gpu"` // the profile of the simulation
	Rate      float64 `json:"rate"`
	Clients   int     `json:"concurrency,omitempty"` // of a closed loop, which has no rate
	Trace     string  `json:"trace,omitempty"`       // its file's name; a workload of lengths has none
	Requests  int     `json:"requests"`              // that arrive
	Seed      uint64  `json:"seed"`
	Variant   string  `json:"variant"`
	Live      string  `json:"live"`
	Simulated string  `json:"simulated"`
	Saturated bool    `json:"saturated"`
	DelayS    float64 `json:"delay_s"` // of the service level
	// Steps are the figures of the steps.
	Steps []Comparison `json:"step_figures,omitempty"`
}

// Report is the comparison of a simulation with live runs.
type Report struct {
	Name, Device string
	Runs         []ValidatedRun // in the order of the experiment
	Files        []string
}

// Recompute rebuilds the report of a result folder from its kept runs, and writes validate.csv and
// validate.json.
func Recompute(dir string) (*Report, error) {
	report, err := Read(dir)
	if err != nil {
		return nil, err
	}
	return report, report.write(dir)
}

// Read rebuilds the report of a result folder from its kept runs.
func Read(dir string) (*Report, error) {
	index, err := readIndex(dir)
	if err != nil {
		return nil, err
	}
	report := &Report{Name: index.Name, Device: index.Device}
	for i := range index.Runs {
		run, err := index.Runs[i].read(dir)
		if err != nil {
			return nil, err
		}
		report.Runs = append(report.Runs, run)
	}
	return report, nil
}

// readIndex reads the list of runs that a result folder compares.
func readIndex(dir string) (index validationRuns, err error) {
	path := filepath.Join(dir, validationIndex)
	err = files.ReadJSON(path, &index)
	if errors.Is(err, fs.ErrNotExist) {
		return index, fmt.Errorf("%s: no %s, so no validation was finished here", dir, validationIndex)
	}
	if err != nil {
		return index, err
	}
	if len(index.Runs) == 0 {
		return index, fmt.Errorf("%s: no runs", path)
	}
	return index, nil
}

// Simulated lists the paths of a validation's simulated runs for files.OpenResult.
func Simulated(dir string) (places []string, err error) {
	index, err := readIndex(dir)
	for i := range index.Runs {
		places = append(places, filepath.Join(dir, filepath.FromSlash(index.Runs[i].Simulated)))
	}
	return places, err
}

// read compares one run from its files.
func (v *validationRun) read(dir string) (r ValidatedRun, err error) {
	r = ValidatedRun{Run: v.Run, System: v.System, Model: v.Model, Variant: v.Variant, Rate: v.Rate,
		Seed: v.Seed, Trace: v.Trace}
	for _, side := range []struct {
		folder string
		into   *metrics.Summary
	}{{v.Live, &r.Live}, {v.Simulated, &r.Simulated}} {
		from := filepath.Join(dir, filepath.FromSlash(side.folder))
		*side.into, err = run.ReadSummary(from)
		if errors.Is(err, fs.ErrNotExist) && side.folder == v.Simulated {
			return r, fmt.Errorf("%s: not there; sparseserve validate reuse CONFIG --out %s "+
				"simulates what is missing", from, dir)
		}
		if err != nil {
			return r, err
		}
		if err := followsFromRequests(from, side.into); err != nil {
			return r, err
		}
	}
	requests, err := readServed(filepath.Join(dir, filepath.FromSlash(v.Live)))
	if err != nil {
		return r, err
	}
	r.Comparisons = append(compareSummaries(v.Run, &r.Live, &r.Simulated), v.Steps...)
	r.Saturated = saturated(&r.Live, requests, &config.SLO{DelayS: v.DelayS})
	return r, nil
}

// write writes the table of all comparisons as JSON and CSV.
func (r *Report) write(dir string) error {
	table := run.NewTable("run", "system", "model", "rate", "seed", "saturated", "metric", "live",
		"simulated", "error")
	for i := range r.Runs {
		v := &r.Runs[i]
		for _, c := range v.Comparisons {
			table.Add(v.Run, v.System, v.Model, v.Rate, v.Seed, v.Saturated, c.Metric, c.Live,
				c.Simulated, c.Error)
		}
	}
	r.Files = []string{filepath.Join(dir, validationIndex), filepath.Join(dir, validationJSON),
		filepath.Join(dir, validationCSV)}
	return errors.Join(run.WriteJSON(r.Files[1], r.Comparisons()),
		run.WriteFile(r.Files[2], table.Bytes()))
}

// Comparisons lists all figures of all runs.
func (r *Report) Comparisons() []Comparison {
	all := []Comparison{}
	for i := range r.Runs {
		all = append(all, r.Runs[i].Comparisons...)
	}
	return all
}

// WorstFirst returns the runs by their largest error relative to its goal, runs below saturation
// first.
func (r *Report) WorstFirst() []ValidatedRun {
	runs := slices.Clone(r.Runs)
	slices.SortStableFunc(runs, func(a, b ValidatedRun) int {
		if a.Saturated != b.Saturated {
			return cmp.Compare(bit(a.Saturated), bit(b.Saturated))
		}
		return cmp.Compare(b.Worst(), a.Worst())
	})
	return runs
}
