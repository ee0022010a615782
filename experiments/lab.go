package experiments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"sparseserve/sim"
)

// Lab runs the experiments behind the paper's figures and keeps what they
// give:
//
//	NAME/summary.json   one object a run, for experiments that serve requests
//	NAME/table.csv      for the others
//	runs/HASH.json      every run, by its configuration
//
// Experiments share runs, and a run that is kept is not made again. Kept runs
// belong to one Version of the program.
type Lab struct {
	Dir     string
	Run     Runner
	Version string
	Workers int      // 0 = one a core
	Sets    []string // key=value, over the files of the experiments that serve requests
	// Scale multiplies the output lengths of experiments that depend on them; 0
	// leaves them.
	Scale float64
	// Planned and Finished count runs for a progress bar; they may be nil.
	Planned  func(runs int)
	Finished func()

	ctx context.Context
}

// LabRun is one run: its summary and what the axes of its experiment set.
type LabRun struct {
	sim.Summary
	Settings map[string]any `json:"settings"`
}

const (
	runsFolder  = "runs"
	versionFile = "version"
	tableFile   = "table.csv"
)

// Do runs the named experiments, or all.
func (l *Lab) Do(ctx context.Context, names ...string) error {
	l.ctx = ctx
	if err := l.open(); err != nil {
		return err
	}
	all := paperExperiments()
	for _, name := range names {
		if !slices.ContainsFunc(all, func(e paperExperiment) bool { return e.Name == name }) {
			return fmt.Errorf("%s: no such experiment of the paper%s", name, didYouMean(name, PaperExperiments()))
		}
	}
	for _, e := range all {
		if len(names) > 0 && !slices.Contains(names, e.Name) {
			continue
		}
		if err := os.MkdirAll(filepath.Join(l.Dir, e.Name), 0o755); err != nil {
			return err
		}
		if err := e.run(l, &e); err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	return nil
}

// open makes the folder ready and forgets the runs of another version.
func (l *Lab) open() error {
	runs := filepath.Join(l.Dir, runsFolder)
	path := filepath.Join(runs, versionFile)
	have, err := os.ReadFile(path)
	if err == nil && string(have) == l.Version {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	kept, err := filepath.Glob(filepath.Join(runs, "*.json"))
	if err != nil {
		return err
	}
	for _, run := range kept {
		if err := os.Remove(run); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(runs, 0o755); err != nil {
		return err
	}
	return writeFile(path, []byte(l.Version))
}

// sweep runs an experiment that serves requests.
func (l *Lab) sweep(e *paperExperiment) error {
	s, err := l.load(e)
	if err != nil {
		return err
	}
	points, err := s.Points()
	if err != nil {
		return err
	}
	runs, err := l.points(points)
	if err != nil {
		return err
	}
	text, err := marshalRuns(runs)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(l.Dir, e.Name, summaryFile), text)
}

// load reads the file of an experiment that serves requests.
func (l *Lab) load(e *paperExperiment) (*Sweep, error) {
	s, err := LoadSweep(e.Name, l.Sets)
	if err != nil || l.Scale == 0 || !e.scaled {
		return s, err
	}
	scale := l.Scale * s.Variants[0].Config.Workload.OutputScale
	return LoadSweep(e.Name, append(slices.Clone(l.Sets), "workload.output_scale="+number(scale)))
}

// points runs what is not kept yet and returns all runs in order.
func (l *Lab) points(points []SweepPoint) ([]LabRun, error) {
	if l.Planned != nil {
		l.Planned(len(points))
	}
	workers := l.Workers
	if workers < 1 {
		workers = runtime.GOMAXPROCS(0)
	}
	group, ctx := errgroup.WithContext(l.ctx)
	group.SetLimit(workers)
	runs := make([]LabRun, len(points))
	for i, p := range points {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			sum, err := l.one(ctx, &p)
			if err != nil {
				return fmt.Errorf("%s: %w", p.Label, err)
			}
			runs[i] = LabRun{*sum, map[string]any{}}
			for _, s := range p.Settings {
				runs[i].Settings[s.Key] = s.Value
			}
			if l.Finished != nil {
				l.Finished()
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return runs, l.ctx.Err()
}

// one returns the summary of a point, kept or run.
func (l *Lab) one(ctx context.Context, p *SweepPoint) (*sim.Summary, error) {
	path := filepath.Join(l.Dir, runsFolder, p.Hash+".json")
	text, err := os.ReadFile(path)
	if err == nil {
		sum := &sim.Summary{}
		if err := json.Unmarshal(text, sum); err == nil && sum.Name == p.Name {
			return sum, nil
		} // else it is run again
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	grid := Grid{Run: l.Run}
	start := time.Now()
	sum, err := grid.point(ctx, p.Point)
	if err != nil {
		return nil, err
	}
	sum.WallS = time.Since(start).Seconds()
	if text, err = marshalSummary(&sum); err != nil {
		return nil, err
	}
	return &sum, writeFile(path, text)
}

func marshalRuns(runs []LabRun) ([]byte, error) {
	type stored struct {
		storedSummary
		Settings map[string]any `json:"settings"`
	}
	out := make([]stored, len(runs))
	for i := range runs {
		out[i] = stored{storedSummary{Summary: &runs[i].Summary}, runs[i].Settings}
	}
	text, err := json.MarshalIndent(out, "", " ")
	return append(text, '\n'), err
}
