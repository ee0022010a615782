package validate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim"
)

// Repeat holds the live runs of a folder against those of another, which made the same runs once
// more: Simulated is the second one's. What two live runs differ by, no model predicts. Runs that
// only one folder has are left out.
func Repeat(dir, again string) (*Report, error) {
	first, second := filepath.Join(dir, liveFolder), filepath.Join(again, liveFolder)
	folders, err := os.ReadDir(first)
	if err != nil {
		return nil, fmt.Errorf("%w: %s is no folder with live runs", err, dir)
	}
	report := &Report{Name: dir, Device: again}
	for _, f := range folders {
		to := filepath.Join(second, f.Name())
		if _, err := os.Stat(to); !f.IsDir() || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		r, err := repeated(f.Name(), filepath.Join(first, f.Name()), to)
		if err != nil {
			return nil, err
		}
		report.Runs = append(report.Runs, r)
	}
	if len(report.Runs) == 0 {
		return nil, fmt.Errorf("%s and %s have no run in common", first, second)
	}
	return report, nil
}

// repeated compares two folders of one run. Their engines may differ: no live run asks for one.
func repeated(name, first, second string) (r ValidatedRun, err error) {
	r = ValidatedRun{Run: name, LiveFolder: first}
	var a, b config.Point
	if a, err = config.LoadPoint(filepath.Join(first, run.ConfigFile)); err != nil {
		return r, err
	}
	if b, err = config.LoadPoint(filepath.Join(second, run.ConfigFile)); err != nil {
		return r, err
	}
	one, other := a.System, b.System
	one.Engine, other.Engine = "", ""
	if a.Model != b.Model || a.Seed != b.Seed || !reflect.DeepEqual(a.Workload, b.Workload) ||
		!reflect.DeepEqual(one, other) {
		return r, fmt.Errorf("%s: its configuration is not that of %s", second, first)
	}
	for _, side := range []struct {
		folder string
		into   *sim.Summary
	}{{first, &r.Live}, {second, &r.Simulated}} {
		if *side.into, err = run.ReadSummary(side.folder); err != nil {
			return r, err
		}
		if err := followsFromRequests(side.folder, side.into); err != nil {
			return r, err
		}
	}
	served, err := readServed(first)
	if err != nil {
		return r, err
	}
	r.System, r.Model, r.Rate, r.Seed = a.System.Name, a.Model, a.Workload.Rate, a.Seed
	r.Saturated = saturated(&r.Live, served, &a.SLO)
	r.Comparisons = compareSummaries(name, &r.Live, &r.Simulated)
	return r, nil
}
