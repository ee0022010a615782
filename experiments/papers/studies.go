package papers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/sparseserve/sparseserve/experiments"
	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim"
)

// Files of an experiment that is neither a sweep nor a plan: its table, and the TOML that it
// was made with.
const (
	tableFile = "table.csv"
	studyFile = "study.toml"
)

// Studies runs the experiments of the paper's figures:
//
//	NAME/   a SweepFolder, for experiments that serve requests; what WritePlan
//	        writes, for a goodput search; table.csv and study.toml for the others;
//	        version.json names the program
//
// Runs are kept in its store, which experiments share.
type Studies struct {
	Dir     string
	Store   *run.PointStore
	Run     run.Runner
	Workers int      // 0 = one a core
	Sets    []string // key=value, over the files of the experiments that serve requests
	// Change alters a tuned parameter of every run that depends on it; nil
	// leaves all.
	Change *Change
	// Planned and Finished count runs for a progress bar, from many goroutines
	// at once; they may be nil.
	Planned  func(runs int)
	Finished func()

	ctx     context.Context
	notes   []string
	profile string // the changed one, if there is one
}

// Do runs the named experiments, or all but those that take long. Notes are those of PointStore.Do.
func (l *Studies) Do(ctx context.Context, names ...string) (notes []string, err error) {
	l.ctx, l.notes = ctx, nil
	if err := os.MkdirAll(l.Dir, 0o755); err != nil {
		return nil, err
	}
	all := paperExperiments()
	for _, name := range names {
		if !slices.ContainsFunc(all, func(e experiments.Experiment) bool { return e.Name == name }) {
			return nil, fmt.Errorf("%s: no such experiment of the paper%s", name,
				config.DidYouMean(name, PaperExperiments()))
		}
	}
	if l.Change != nil {
		if l.profile, err = l.Change.writeProfile(l.Dir); err != nil {
			return nil, err
		}
	}
	if len(names) > 0 {
		all = slices.DeleteFunc(all, func(e experiments.Experiment) bool {
			return !slices.Contains(names, e.Name)
		})
	} else {
		all = slices.DeleteFunc(all, func(e experiments.Experiment) bool { return apart(e.Name) })
	}
	if err := l.plan(all); err != nil {
		return nil, err
	}
	for _, e := range all {
		if err := l.experiment(&e); err != nil {
			return l.notes, fmt.Errorf("%s: %w", e.Name, err)
		}
		if err := l.finish(&e); err != nil {
			return l.notes, fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	return l.notes, nil
}

// plan counts the runs to make, those of a goodput search by a guess.
func (l *Studies) plan(all []experiments.Experiment) error {
	runs, counted := 0, map[string]bool{}
	for _, e := range all {
		if e.Command == "" {
			continue
		}
		s, err := l.load(&e)
		if err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
		if e.Command == "plan" {
			candidates, err := capacity.Candidates(s)
			if err != nil {
				return fmt.Errorf("%s: %w", e.Name, err)
			}
			runs += capacity.GuessRuns(&s.Goodput, candidates...)
			continue
		}
		points, err := s.Points()
		if err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
		for _, p := range points {
			missing, _, err := l.Store.Missing([]config.Point{p.Point}, config.Until(l.ctx))
			if err != nil {
				return err
			}
			if len(missing) > 0 && !counted[p.Hash] {
				runs++
			}
			counted[p.Hash] = true
		}
	}
	l.planned(runs)
	return nil
}

// sweep runs an experiment that serves requests.
func (l *Studies) sweep(e *experiments.Experiment) error {
	s, err := l.load(e)
	if err != nil {
		return err
	}
	folder, err := run.StartSweepFolder(l.folder(e), l.Store, s)
	if err != nil {
		return err
	}
	results, notes, err := l.Store.Do(l.ctx, run.Grid{Run: l.counted, Workers: l.Workers},
		folder.Points())
	l.notes = append(l.notes, notes...)
	if err != nil {
		return err
	}
	_, err = folder.Finish(results)
	return err
}

// goodput looks for the largest rate at which each system keeps its service
// level.
func (l *Studies) goodput(e *experiments.Experiment) error {
	s, err := l.load(e)
	if err != nil {
		return err
	}
	candidates, err := capacity.Candidates(s)
	if err != nil {
		return err
	}
	found, err := l.search(&s.Goodput, candidates)
	if err != nil {
		return err
	}
	_, err = capacity.WritePlan(l.folder(e), found)
	return err
}

// search finds the goodput of candidates.
func (l *Studies) search(spec *config.GoodputSearch, candidates []capacity.Candidate) (
	[]capacity.Goodput, error) {
	p := capacity.Planner{Store: l.Store, Run: l.Run, Workers: l.Workers, Planned: l.planned,
		Finished: l.finished}
	found, notes, err := p.Do(l.ctx, *spec, candidates)
	l.notes = append(l.notes, notes...)
	return found, err
}

// load reads the file of an experiment that serves requests.
func (l *Studies) load(e *experiments.Experiment) (*config.Sweep, error) {
	s, err := config.LoadSweep(e.Name, l.Sets, config.Until(l.ctx))
	if err == nil {
		s.Alter = l.alter
	}
	return s, err
}

// write writes the table of an experiment and what it was made with.
func (l *Studies) write(e *experiments.Experiment, t *run.Table) error {
	if err := os.MkdirAll(l.folder(e), 0o755); err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		text []byte
	}{{studyFile, []byte(e.Text)}, {tableFile, t.Bytes()}} {
		if err := run.KeptWhenFull(run.WriteFile(filepath.Join(l.folder(e), f.name),
			f.text)); err != nil {
			return err
		}
	}
	return nil
}

func (l *Studies) folder(e *experiments.Experiment) string { return filepath.Join(l.Dir, e.Name) }

// counted is Run with a bar.
func (l *Studies) counted(ctx context.Context, p config.Point, sink run.Sink) (sim.Summary, error) {
	sum, err := l.Run(ctx, p, sink)
	if err == nil {
		l.finished()
	}
	return sum, err
}

func (l *Studies) planned(runs int) {
	if l.Planned != nil {
		l.Planned(runs)
	}
}

func (l *Studies) finished() {
	if l.Finished != nil {
		l.Finished()
	}
}
