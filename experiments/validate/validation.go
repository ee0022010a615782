package validate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/traces"
)

// LiveRunner makes live runs: a *Live.
type LiveRunner interface {
	Device() (name string, err error)
	// Options says how runs are made that the configuration does not say.
	Options() string
	// Shadowed carries out a point and returns what each step asked of the device.
	Shadowed(context.Context, config.Point, run.Sink) (sim.Summary, []live.RecordedStep, error)
}

// Validation runs the points of a sweep live, one after the other, simulates the
// same points, and compares. Its folder holds
//
//	live/KEY/        config.toml, summary.json, requests.csv.gz, steps.csv.gz, calls.json.gz
//	                 disturbed.json if it was made twice and something disturbed both
//	again/KEY/       the same, while a live run is made once more
//	simulated/KEY/   the same of the simulation, without calls
//	steps/RUN.csv.gz each step of a live run and the modelled time of its batch
//	pictures/        PNGs, drawn by package figures
//	runs.json        which runs are compared
//	validate.json    every figure, live and simulated, as validate.csv is too
//
// A finished run is not made again as long as its configuration, profile,
// program and, of a live run, device stay the same.
type Validation struct {
	Dir         string
	Sweep       *config.Sweep
	Live        LiveRunner
	LiveProgram string // names the version of what makes live runs
	Program     string // names the version of what simulates
	Simulate    run.Runner
	Workers     int // simulations at a time; 0 = one a core
	// Kept takes live runs that are kept, whatever profile, device and program
	// made them. What is missing is made, or left out where there is no library to make it.
	Kept bool
	// LiveOnly makes live runs and nothing else. Several processes, one for each
	// GPU, may do so in one folder: each takes the next run that nobody makes.
	LiveOnly bool
	// Again makes live runs once more that something disturbed, and keeps the steadier
	// of the two.
	Again    bool
	Planned  func(requests int) // how many more requests are to be served; may be nil
	Finished func()             // one was; may be nil

	// Taken is, after Do with LiveOnly, how many runs other processes took.
	Taken int

	hashes *config.Hasher
	names  map[string]string // of runs' folders, by the hash of the point
	device string
	points []config.SweepPoint
	notes  []string
}

// Do makes what is missing and reports. When a live run fails, the others are
// made and kept, until a second one fails in a row; the error says which failed,
// and no report is made. Notes say
// which kept runs were damaged, and which are left out.
func (v *Validation) Do(ctx context.Context) (report *Report, notes []string, err error) {
	if v.Planned == nil {
		v.Planned = func(int) {}
	}
	v.Sweep.Alter = func(p *config.Point) {
		p.System.Heads = "full"
		p.Output = config.Output{Steps: true}
	}
	if v.points, err = v.Sweep.Points(); err != nil {
		return nil, nil, err
	}
	v.hashes, v.names = config.NewHasher(), map[string]string{}
	for i := range v.points {
		name := safeName(v.points[i].Label)
		if slices.Contains(slices.Collect(maps.Values(v.names)), name) {
			name += "-" + v.points[i].Hash
		}
		v.names[v.points[i].Hash] = name
	}
	if err := os.MkdirAll(v.Dir, 0o755); err != nil {
		return nil, nil, err
	}
	lock, err := run.LockFolder(filepath.Join(v.Dir, run.LockFile), !v.LiveOnly)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", v.Dir, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()

	report, err = v.do(ctx)
	return report, v.notes, err
}

func (v *Validation) do(ctx context.Context) (*Report, error) {
	lives, err := v.liveRuns(ctx)
	if err != nil || v.LiveOnly {
		return nil, err
	}
	simulated, err := v.simulations(ctx)
	if err != nil {
		return nil, err
	}
	if err := v.index(lives, simulated); err != nil {
		return nil, err
	}
	return Recompute(v.Dir)
}

// liveRuns makes the live runs that are missing and returns the folders of all.
func (v *Validation) liveRuns(ctx context.Context) ([]string, error) {
	if !v.Kept {
		var err error
		if v.device, err = v.Live.Device(); err != nil {
			return nil, err
		}
	}
	makers := &run.Makers{Device: v.device, Program: v.LiveProgram + " " + v.Live.Options(),
		Folder: v.folder, Any: v.Kept}
	store, err := run.OpenShared(filepath.Join(v.Dir, liveFolder), makers)
	if err != nil {
		return nil, err
	}
	if err := adopt(store, filepath.Join(v.Dir, againFolder)); err != nil {
		return nil, err
	}
	missing, err := v.missing(store)
	if err != nil {
		return nil, err
	}
	if v.Kept && len(missing) > 0 {
		if v.device, err = v.Live.Device(); err != nil {
			if err := v.without(missing, err); err != nil {
				return nil, err
			}
			missing = nil
		}
		makers.Device = v.device
	}
	v.Planned(requestsOf(pointsOf(missing)))
	var steps []live.RecordedStep
	var spread bool
	makers.Finish = func(dir string) error {
		text, err := marshalCalls(steps, spread)
		if err != nil {
			return err
		}
		return errors.Join(writeGzip(filepath.Join(dir, callsFile), text), compress(dir))
	}
	simulate := func(ctx context.Context, p config.Point, sink run.Sink) (sum sim.Summary, err error) {
		spread = p.System.LoadEngine == hw.LoadMemcpy
		sum, steps, err = v.Live.Shadowed(ctx, p, sink)
		return sum, err
	}
	grid := run.Grid{Run: simulate, Store: store, Workers: 1, Finished: v.Finished}
	kept := len(v.points) - len(missing)
	var failed []error
	inARow := 0
	v.Taken = 0
	for i := range missing {
		made, err := v.claimed(store, &missing[i].Point, func() error {
			_, err := grid.Do(ctx, []config.Point{missing[i].Point})
			return err
		})
		if !made && err == nil {
			v.Taken++
		} else if err == nil {
			kept++
			inARow = 0
		}
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%w; %d of %d live runs are kept: the same command runs the rest", err,
				kept, len(v.points))
		}
		failed = append(failed, fmt.Errorf("live run of %s: %w", missing[i].Label, err))
		if inARow++; inARow == 2 { // the machine, not the run
			break
		}
	}
	if len(failed) > 0 {
		return nil, fmt.Errorf("%w\n%d of %d live runs are kept in %s", errors.Join(failed...), kept,
			len(v.points), store.Dir())
	}
	if v.Again {
		if err := v.again(ctx, grid, store); err != nil {
			return nil, err
		}
	}
	if v.LiveOnly { // others may still be making theirs
		return nil, nil
	}
	return v.folders(store)
}

// without goes on with the points whose live runs are kept, on a machine without the
// library that could make those that are missing.
func (v *Validation) without(missing []config.SweepPoint, why error) error {
	what := fmt.Sprintf("%s: %d of %d live runs are not kept, the first is %s", v.Dir, len(missing),
		len(v.points), missing[0].Label)
	if v.LiveOnly || len(missing) == len(v.points) || !errors.Is(why, cuda.ErrNoLibrary) {
		return fmt.Errorf("%s: %w", what, why)
	}
	v.notes = append(v.notes, fmt.Sprintf("%s; those are left out: %v", what, why))
	v.points = slices.DeleteFunc(v.points, func(p config.SweepPoint) bool {
		return slices.ContainsFunc(missing, func(m config.SweepPoint) bool { return m.Label == p.Label })
	})
	return nil
}

// claimed makes a run unless another process makes it or has made it since, and
// says whether it did.
func (v *Validation) claimed(s *run.PointStore, p *config.Point, run func() error) (made bool,
	err error) {
	claim, err := s.Claim(p)
	if err != nil || claim == nil {
		return false, err
	}
	defer func() { err = errors.Join(err, claim()) }()
	if dir, _, err := s.Find(p); err != nil || dir != "" {
		return false, err
	}
	return true, run()
}

// simulations makes the simulations that are missing and returns the folders of
// all.
func (v *Validation) simulations(ctx context.Context) ([]string, error) {
	store, err := run.OpenShared(filepath.Join(v.Dir, simulatedFolder),
		&run.Makers{Program: v.Program, Folder: v.folder, Replace: true, Finish: compress})
	if err != nil {
		return nil, err
	}
	points := pointsOf(v.points)
	missing, _, err := store.Missing(points)
	if err != nil {
		return nil, err
	}
	v.Planned(requestsOf(missing))
	_, notes, err := store.Do(ctx, run.Grid{Run: v.Simulate, Workers: v.Workers, Finished: v.Finished},
		points)
	v.notes = append(v.notes, notes...)
	if err != nil {
		return nil, fmt.Errorf("simulation: %w", err)
	}
	return v.folders(store)
}

// missing lists the points that a store does not keep.
func (v *Validation) missing(s *run.PointStore) (missing []config.SweepPoint, err error) {
	for i := range v.points {
		dir, note, err := s.Find(&v.points[i].Point)
		if err != nil {
			return nil, err
		}
		if note != "" {
			v.notes = append(v.notes, note)
		}
		if dir == "" {
			missing = append(missing, v.points[i])
		}
	}
	return missing, nil
}

// folders lists where the points are kept.
func (v *Validation) folders(s *run.PointStore) ([]string, error) {
	dirs := make([]string, len(v.points))
	for i := range v.points {
		dir, note, err := s.Find(&v.points[i].Point)
		if err != nil {
			return nil, err
		}
		if dir == "" {
			return nil, fmt.Errorf("%s: %s is not kept: %s", s.Dir(), v.points[i].Label, note)
		}
		dirs[i] = dir
	}
	return dirs, nil
}

// index prices the steps of the live runs and writes runs.json.
func (v *Validation) index(lives, simulated []string) error {
	index := validationRuns{Name: v.Sweep.Name}
	var devices []string
	for i := range v.points {
		p := &v.points[i]
		sum, err := run.ReadSummary(lives[i])
		if err != nil {
			return err
		}
		if sum.Completed == 0 {
			v.notes = append(v.notes, fmt.Sprintf("%s is left out: no request of it was served live; %s "+
				"says why", p.Label, filepath.Join(lives[i], run.RequestsCSV+".gz")))
			continue
		}
		steps := filepath.Join(v.Dir, stepsFolder, v.folder(&p.Point)+".csv.gz")
		if err := price(&p.Point, lives[i], steps); err != nil {
			return err
		}
		row := validationRun{Run: p.Label, System: p.System.Name, Model: p.Model, GPU: p.GPU,
			Rate: p.Workload.Rate, Clients: p.Workload.Concurrency, Seed: p.Seed,
			Trace: filepath.Base(p.Workload.Trace), Requests: traces.Count(p.Workload),
			Variant: loadLabel(p.Settings), DelayS: p.SLO.DelayS}
		for _, path := range []struct {
			from string
			into *string
		}{{lives[i], &row.Live}, {simulated[i], &row.Simulated}, {steps, &row.Steps}} {
			rel, err := filepath.Rel(v.Dir, path.from)
			if err != nil {
				return err
			}
			*path.into = filepath.ToSlash(rel)
		}
		requests, err := readServed(lives[i])
		if err != nil {
			return err
		}
		row.Saturated = saturated(&sum, requests, &p.SLO)
		made, err := run.ReadManifest(lives[i])
		if err != nil {
			return fmt.Errorf("%s: %w", lives[i], err)
		}
		if !slices.Contains(devices, made.Device) {
			devices = append(devices, made.Device)
		}
		index.Runs = append(index.Runs, row)
	}
	if len(index.Runs) == 0 {
		return fmt.Errorf("%s: no live run served a request: %s", v.Dir, strings.Join(v.notes, "; "))
	}
	index.Device = strings.Join(devices, ", ")
	text, err := json.MarshalIndent(&index, "", "  ")
	if err != nil {
		return err
	}
	return run.WriteFile(filepath.Join(v.Dir, validationIndex), append(text, '\n'))
}

func requestsOf(points []config.Point) int {
	specs := make([]traces.Spec, len(points))
	for i := range points {
		specs[i] = points[i].Workload
	}
	return traces.Count(specs...)
}

func pointsOf(swept []config.SweepPoint) []config.Point {
	points := make([]config.Point, len(swept))
	for i := range swept {
		points[i] = swept[i].Point
	}
	return points
}

// folder names the folder of a run by its label.
func (v *Validation) folder(p *config.Point) string {
	hash, err := v.hashes.Hash(p)
	if err != nil {
		panic(err) // it has been hashed before
	}
	return v.names[hash]
}

// safeName makes a file name of a label.
func safeName(label string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (slices.Contains([]rune("._+-="), r) || '0' <= r && r <= '9' || 'a' <= r &&
			r <= 'z' || 'A' <= r && r <= 'Z') {
			return r
		}
		return '_'
	}, label)
}

// loadLabel names what the axes set besides the system: systems that differ in a
// key of their own are compared at one load.
func loadLabel(settings []config.Setting) string {
	load := slices.DeleteFunc(slices.Clone(settings), func(s config.Setting) bool {
		return strings.HasPrefix(s.Key, "system.")
	})
	return strings.TrimSpace(config.SettingsLabel(load))
}
