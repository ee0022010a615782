package validate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// LiveRunner makes live runs: a *Live.
type LiveRunner interface {
	Device() (name string, err error)
	// Options describes the run options that are not in the configuration.
	Options() string
	// Shadowed carries out a point and returns the calls of each step to the device.
	Shadowed(context.Context, config.Point, run.Sink) (metrics.Summary, []live.RecordedStep, error)
}

// Validation runs the points of a sweep live, one at a time, simulates the same points, and
// compares. Its folder holds
//
//	live/KEY/        config.toml, summary.json, requests.csv.gz, calls.json.gz, point.json
//	simulated/       the Store of the simulations
//	pictures/        PNGs, drawn by package figures
//	runs.json        which runs are compared, with the figures of their steps
//	validate.json    every figure, live and simulated, as in validate.csv
//
// A finished run is reused as long as its configuration, profile and program, and the device of a
// live run, stay the same.
type Validation struct {
	Dir         string
	Sweep       *config.Sweep
	Live        LiveRunner
	LiveProgram string // names the version of what makes live runs
	Program     string // names the version of what simulates
	Simulate    run.Runner
	Workers     int // simulations at a time; 0 = one a core
	// Kept accepts kept live runs of any profile, device and program. Missing runs are made, or left
	// out if there is no library to make them.
	Kept     bool
	Planned  func(requests int) // how many more requests are to be served; may be nil
	Finished func()             // one was; may be nil

	names  map[string]string // of runs' folders, by the hash of the point
	device string
	points []config.Point
	notes  []string
}

// Do makes the missing runs and the report. If a live run fails, Do makes and keeps the others
// until two fail in a row; the error names the failed runs, and there is no
// report. Notes name damaged runs and omitted ones.
func (v *Validation) Do(ctx context.Context) (report *Report, notes []string, err error) {
	if v.Planned == nil {
		v.Planned = func(int) {}
	}
	for _, p := range v.Sweep.Runs() {
		p.System.Simulation.Heads = "full"
		p.Output = config.Output{Steps: true}
	}
	if v.points, err = v.Sweep.Points(context.WithoutCancel(ctx)); err != nil {
		return nil, nil, err
	}
	v.names = map[string]string{}
	for i := range v.points {
		name := safeName(v.points[i].Label())
		if slices.Contains(slices.Collect(maps.Values(v.names)), name) {
			name += "-" + v.points[i].Hash
		}
		v.names[v.points[i].Hash] = name
	}
	if err := files.CheckFolder(v.Dir, v.Sweep.Paths()...); err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(v.Dir, 0o755); err != nil {
		return nil, nil, err
	}
	lock, err := run.LockFolder(filepath.Join(v.Dir, run.LockFile), true)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", v.Dir, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()

	report, err = v.do(ctx)
	return report, v.notes, err
}

func (v *Validation) do(ctx context.Context) (*Report, error) {
	lives, err := v.liveRuns(ctx)
	if err != nil {
		return nil, err
	}
	simulated, err := v.simulations(ctx)
	if err != nil {
		return nil, err
	}
	return v.report(lives, simulated)
}

// simulations makes the missing simulations and returns the folders of all.
func (v *Validation) simulations(ctx context.Context) (places []string, err error) {
	store, err := run.OpenStore(filepath.Join(v.Dir, simulatedFolder), v.Program, true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Pack(), store.Close()) }()
	simulate := func(ctx context.Context, p config.Point, sink run.Sink) (metrics.Summary, error) {
		sink.Steps = nil // only steps of live runs are compared
		return v.Simulate(ctx, p, sink)
	}
	_, err = store.Do(ctx, run.Grid{Run: simulate, Workers: v.Workers, Finished: v.Finished,
		Missing: func(missing []config.Point) { v.Planned(run.Requests(missing)) }}, v.points)
	v.notes = append(v.notes, store.Notes()...)
	if err != nil {
		return nil, fmt.Errorf("simulation: %w", err)
	}
	for i := range v.points {
		hash, err := store.Hash(&v.points[i])
		if err != nil {
			return nil, err
		}
		places = append(places, filepath.Join(store.Dir(), hash))
	}
	return places, nil
}
