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

// Report is the comparison of a simulation with live runs. Fields with a JSON name are in
// runs.json.
type Report struct {
	Name   string         `json:"name"`
	Device string         `json:"device"`
	Runs   []ValidatedRun `json:"runs"` // in the order of the experiment
	Files  []string       `json:"-"`
}

// ValidatedRun is one run of a validation with its errors. Paths begin at the result folder.
type ValidatedRun struct {
	Run           string  `json:"run"`
	System        string  `json:"system"`
	Model         string  `json:"model"`
	GPU           string  `json:"gpu"` // the profile of the simulation
	Rate          float64 `json:"rate"`
	Clients       int     `json:"concurrency,omitempty"` // of a closed loop, which has no rate
	Trace         string  `json:"trace,omitempty"`       // its file's name, if it has one
	Requests      int     `json:"requests"`              // that arrive
	Seed          uint64  `json:"seed"`
	Variant       string  `json:"variant"` // what the axes set besides system, rate and seed
	LivePath      string  `json:"live"`
	SimulatedPath string  `json:"simulated"`
	// Saturated is set if requests arrived faster than the live run served them (saturated).
	Saturated bool         `json:"saturated"`
	DelayS    float64      `json:"delay_s"` // of the service level
	Steps     []Comparison `json:"step_figures,omitempty"`

	Live        metrics.Summary `json:"-"`
	Simulated   metrics.Summary `json:"-"`
	Comparisons []Comparison    `json:"-"` // of the summaries and the steps
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
	report, err := readIndex(dir)
	for i := 0; i < len(report.Runs) && err == nil; i++ {
		err = report.Runs[i].read(dir)
	}
	if err != nil {
		return nil, err
	}
	return &report, nil
}

// readIndex reads the list of runs that a result folder compares.
func readIndex(dir string) (index Report, err error) {
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

// read compares one run from its files.
func (r *ValidatedRun) read(dir string) error {
	live := filepath.Join(dir, filepath.FromSlash(r.LivePath))
	simulated := filepath.Join(dir, filepath.FromSlash(r.SimulatedPath))
	requests, err := readSide(live, &r.Live)
	if err == nil {
		_, err = readSide(simulated, &r.Simulated)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: not there; sparseserve validate reuse CONFIG --out %s "+
				"simulates what is missing", simulated, dir)
		}
	}
	r.Comparisons = append(compareSummaries(r.Run, &r.Live, &r.Simulated), r.Steps...)
	r.Saturated = saturated(&r.Live, requests, &config.SLO{DelayS: r.DelayS})
	return err
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
