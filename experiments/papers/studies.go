package papers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/sparseserve/sparseserve/experiments"
	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/nearest"
	"github.com/sparseserve/sparseserve/sim/score"
	"github.com/sparseserve/sparseserve/traces"
)

// Files of an experiment that is neither a sweep nor a plan: its table, and its TOML file.
const (
	tableFile = "table.csv"
	studyFile = "study.toml"
)

// Studies runs the experiments of the paper's figures:
//
//	NAME/   a run.Folder: summaries, for experiments that serve requests; the files of
//	        a goodput search; table.csv and study.toml for the others
//
// Runs are kept in its store, which experiments share.
type Studies struct {
	Dir     string
	Store   *run.Store
	Run     run.Runner
	Workers int      // 0 = one a core
	Sets    []string // key=value, over the files of the experiments that serve requests
	// Change alters a tuned parameter of every run that depends on it; nil changes nothing.
	Change *Change
	// Planned and Finished count the runs of an experiment that begins for a progress bar. Goroutines
	// call them concurrently; they may be nil.
	Planned  func(runs int)
	Finished func()

	ctx     context.Context
	profile string // the changed one, if there is one
}

// Do runs the named experiments; without names all but the slow ones.
func (l *Studies) Do(ctx context.Context, names ...string) (err error) {
	l.ctx = ctx
	if err := os.MkdirAll(l.Dir, 0o755); err != nil {
		return err
	}
	known := PaperExperiments()
	for _, name := range names {
		if !slices.Contains(known, name) {
			return fmt.Errorf("%s: no such experiment of the paper%s", name,
				nearest.Meant(name, known))
		}
	}
	if l.Change != nil {
		if l.profile, err = l.Change.writeProfile(l.Dir); err != nil {
			return err
		}
	}
	all := slices.DeleteFunc(paperExperiments(), func(e experiments.Experiment) bool {
		if len(names) == 0 {
			return apart(e.Name)
		}
		return !slices.Contains(names, e.Name)
	})
	for _, e := range all {
		if err := l.experiment(&e); err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	return nil
}

// experiment runs one experiment.
func (l *Studies) experiment(e *experiments.Experiment) error {
	do := studies[e.Command]
	if do == nil {
		do = studies[e.Name]
	}
	if do == nil {
		return errors.New("no study of that name")
	}
	return do(l, e)
}

// write writes the results of an experiment that is not a sweep.
func (l *Studies) write(e *experiments.Experiment, all ...run.File) error {
	folder, err := run.StartFolder(l.folder(e), l.Store, &run.Question{Command: "paper", Name: e.Name,
		Text: e.Text})
	if err != nil {
		return err
	}
	_, err = folder.Write(all...)
	return err
}

// sweep runs an experiment that serves requests.
func (l *Studies) sweep(e *experiments.Experiment) error {
	s, err := l.load(e.Name)
	if err != nil {
		return err
	}
	q, err := run.AskSweep(l.ctx, s)
	if err != nil {
		return err
	}
	folder, err := run.StartFolder(l.folder(e), l.Store, q)
	if err != nil {
		return err
	}
	results, err := l.planner().Runs(l.ctx, q.Runs)
	if err != nil {
		return err
	}
	_, err = folder.Finish(results)
	return err
}

func (l *Studies) planner() *capacity.Planner {
	return &capacity.Planner{Store: l.Store, Run: l.Run, Workers: l.Workers, Planned: l.Planned,
		Finished: l.Finished}
}

// goodput searches for the largest rate at which each system meets its service level.
func (l *Studies) goodput(e *experiments.Experiment) error {
	s, err := l.load(e.Name)
	if err != nil {
		return err
	}
	candidates, err := capacity.Candidates(l.ctx, s)
	if err != nil {
		return err
	}
	found, err := l.planner().Do(l.ctx, s.Goodput, candidates)
	if err != nil {
		return err
	}
	all, err := capacity.GoodputFiles(found)
	if err != nil {
		return err
	}
	return l.write(e, all...)
}

// load reads the file of an experiment that serves requests, and applies settings.
func (l *Studies) load(name string) (*config.Sweep, error) {
	s, err := config.LoadSweep(l.ctx, name, l.Sets)
	if err == nil {
		for _, p := range s.Runs() {
			l.alter(p)
		}
	}
	return s, err
}

func (l *Studies) folder(e *experiments.Experiment) string { return filepath.Join(l.Dir, e.Name) }

// study runs an experiment that is neither a sweep nor a plan, and writes its table.
type study func(*Studies, *experiments.Experiment) error

// studies lists the commands that experiments name, and all studies with the columns of their
// tables.
var studies = map[string]study{
	"simulate": (*Studies).sweep,
	"goodput":  (*Studies).goodput,
	"fig04":    studyOf((*Studies).transfers, "direction engine block_tokens block_bytes blocks gb_s"),
	"fig08":    studyOf((*Studies).overlap, "seed window requests overlap"),
	"eviction": studyOf((*Studies).evictions,
		"seed pool eviction kv_gib steps selected loaded hit_ratio"),
	"psa-fig2": studyOf((*Studies).sparsity, "dataset layer seed budget_blocks tokens_share"),
	"psa-fig5": studyOf((*Studies).accuracy,
		"model dataset system seed knob kv_share recall accuracy_proxy"),
	"mi-fig1b": studyOf((*Studies).prompts,
		"system gpus seed tokens seconds attention_s index_s published_s"),
	"mi-fig10": studyOf((*Studies).kernels, "pattern heads tokens kernel_ms index_ms sparsity"),
}

// studyOf returns a study with settings S. measure adds the rows, with cells in the order of the
// columns.
func studyOf[S any](measure func(*Studies, *S, *run.Table) error, columns string) study {
	return func(l *Studies, e *experiments.Experiment) error {
		var spec S
		decode(e.Name, e.Text, &spec)
		t := run.NewTable(strings.Fields(columns)...)
		if err := measure(l, &spec, t); err != nil {
			return err
		}
		return l.write(e, run.File{Name: studyFile, Text: []byte(e.Text)},
			run.File{Name: tableFile, Text: t.Bytes()})
	}
}

// addRows adds one row per combination, in their order. cells runs on all cores concurrently; a
// combination for which it returns nil has no row.
func addRows[C any](l *Studies, t *run.Table, all []C, cells func(C) ([]any, error)) error {
	rows := make([][]any, len(all))
	group, ctx := errgroup.WithContext(l.ctx)
	group.SetLimit(cmp.Or(max(l.Workers, 0), runtime.GOMAXPROCS(0)))
	for i, c := range all {
		group.Go(func() (err error) {
			if err = ctx.Err(); err == nil {
				rows[i], err = cells(c)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, row := range rows {
		if row != nil {
			t.Add(row...)
		}
	}
	return nil
}

// scores returns the score process with the change applied, and its parameters.
func (l *Studies) scores() (*score.Process, *score.Params) {
	p := config.Point{Scores: score.Default}
	l.alter(&p)
	return score.New(p.Scores, run.ScoreSeed), &p.Scores
}

// promptLengths returns the prompt lengths of a trace's requests, in tokens.
func promptLengths(work traces.Spec, seed uint64, tokenizer ...traces.Tokenizer) ([]int, error) {
	var lengths []int
	for a, err := range traces.Requests(work, seed, tokenizer...) {
		if err != nil {
			return nil, fmt.Errorf("%v: %w", work.Datasets, err)
		}
		lengths = append(lengths, a.Prompt)
	}
	return lengths, nil
}

// paperExperiments lists the experiments of the papers' figures, in the papers' order.
func paperExperiments() []experiments.Experiment {
	return slices.DeleteFunc(experiments.BuiltIn(), func(e experiments.Experiment) bool {
		return !e.Paper
	})
}

// PaperExperiments names the experiments of the papers' figures.
func PaperExperiments() []string {
	var names []string
	for _, e := range paperExperiments() {
		names = append(names, e.Name)
	}
	return names
}

// apart reports whether an experiment takes so long that it runs only if named.
func apart(name string) bool {
	return strings.HasPrefix(name, "psa-") && name != "psa-fig2" && name != "psa-fig5"
}
