package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments"
	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/answers"
	"github.com/sparseserve/sparseserve/internal/doc"
)

// searchFlags are flags of goodput and plan, which make runs until they have an answer.
type searchFlags struct {
	settings
	resultFlags
	storeFlags
	jobFlags
	taskFlags
}

// question is the question of goodput or plan.
type question struct {
	command, file string
	unit          string // of its progress
	sets, cards   []string
	folder        string // name of the results
	*config.Sweep
	candidates []config.Point
}

// load reads the configuration.
func (q *question) load(watch config.Watch) (err error) {
	q.file = cmp.Or(q.file, experiments.Default)
	if q.Sweep, err = config.LoadPlan(q.file, q.sets, watch, q.cards...); err != nil {
		return err
	}
	q.folder = cmp.Or(q.folder, q.Name+settingsName(q.sets))
	return nil
}

// search finds the answer of a question, or writes a job that makes its runs.
func (f *searchFlags) search(ctx context.Context, app *App, q *question,
	find func(*capacity.Planner) (*answer, []string, error)) (err error) {
	if f.Tasks > 0 {
		return f.share(app, find)
	}
	if err := f.checkJob(f.JSON); err != nil {
		return err
	}
	if f.Job != "" {
		if err := checkJobWords(append(q.sets, q.file, f.Out, q.folder, f.Points)...); err != nil {
			return err
		}
	}
	asked, err := run.Ask(q.command, q.folder, q.file, slices.Concat(q.sets, q.cards), q.Paths())
	if err != nil {
		return err
	}
	folder, err := openAnswer(app, asked, &f.resultFlags, &f.storeFlags)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	if f.Job != "" {
		return f.writeJob(app, q, folder)
	}
	return f.answer(ctx, app, folder, q.unit, func(bar *progress) (*answer, []string, error) {
		return find(&capacity.Planner{Store: folder.Store, Run: app.Run, Workers: int(f.Workers),
			Planned: bar.planned, Finished: bar.finished, Say: bar.say})
	})
}

// share runs one task of a job. All tasks search for the answer, one of them makes each run, and
// the command that wrote the job collects the runs.
func (f *searchFlags) share(app *App,
	find func(*capacity.Planner) (*answer, []string, error)) error {
	return f.withStore(app, f.Points, func(store *run.Store) ([]string, error) {
		_, notes, err := find(&capacity.Planner{Store: store, Run: app.Run, Workers: 1,
			Planned: func(int) {}, Shared: &run.Shared{Task: f.Task, Tasks: f.Tasks}})
		return notes, err
	})
}

// mostSearchTasks is the maximum number of tasks that share a search. More tasks would mostly wait,
// because a purchase must know each price before it can skip more expensive candidates.
const mostSearchTasks = 64

// writeJob writes a job whose tasks make the runs of the search, and prints how to submit it.
func (f *searchFlags) writeJob(app *App, q *question, folder *run.Folder) error {
	var cards []string
	if len(q.cards) > 0 {
		cards = []string{"--gpus", strings.Join(q.cards, ",")}
	}
	of := answers.Count(len(q.candidates), "candidate") + " to look at. "
	return f.jobFlags.write(app, folder, of, q.candidates, &run.Job{Name: q.Name,
		Args:  jobArgs(folder, q.sets, append([]string{q.command, q.file}, cards...)...),
		Tasks: min(len(q.candidates), mostSearchTasks)})
}

// openAnswer opens the folder of an answer. Without --out it is the first of out/COMMAND/NAME,
// out/COMMAND/NAME-2, .. that is new or has the same question.
func openAnswer(app *App, q *run.Question, r *resultFlags, s *storeFlags) (folder *run.Folder,
	err error) {
	first := cmp.Or(r.Out, filepath.Join("out", q.Command, q.Name))
	err = numbered(first, r.Out == "", func(dir string) error {
		folder, err = run.OpenFolder(dir, app.Version, q, s.Points, r.Force)
		return err
	}, run.ErrTaken)
	return folder, err
}

type planCmd struct {
	configArg
	planFlags
	searchFlags
}

// Run implements the command.
func (p *planCmd) Run(ctx context.Context, app *App) (err error) {
	q := &question{command: "plan", unit: "candidates", file: p.Config,
		sets: append(p.sets(), p.Set...)}
	if q.cards, err = p.cards(); err != nil {
		return err
	}
	if p.Config == "" {
		q.folder = p.name(slices.Clone(q.cards)) + settingsName(p.Set)
		if q.sets, err = p.alone(p.Set); err != nil {
			return err
		}
	}
	if err := q.load(config.Until(ctx)); err != nil {
		return err
	}
	if q.Plan == nil {
		return fmt.Errorf("plan %s: there is no table [plan]; --set plan.prices=mid adds one, and "+
			"sparseserve goodput %[1]s finds the largest rate", p.Config)
	}
	offers, err := capacity.OffersOf(q.Sweep)
	if err != nil {
		return err
	}
	q.candidates = offers.Points()
	return p.search(ctx, app, q, func(planner *capacity.Planner) (*answer, []string, error) {
		bought, notes, err := planner.Purchase(ctx, offers)
		return &answer{bought, func(name string) *doc.Doc { return answers.Purchase(name, bought) },
			bought.Files}, notes, err
	})
}

type goodputCmd struct {
	configArg
	searchFlags
}

// Run implements the command.
func (g *goodputCmd) Run(ctx context.Context, app *App) error {
	q := &question{command: "goodput", unit: "runs", file: g.Config, sets: g.Set}
	if err := q.load(config.Until(ctx)); err != nil {
		return err
	}
	if q.Plan != nil {
		return fmt.Errorf("goodput %s: the table [plan] asks what to buy: sparseserve plan %[1]s",
			g.Config)
	}
	candidates, err := capacity.Candidates(q.Sweep)
	if err != nil {
		return err
	}
	for i := range candidates {
		q.candidates = append(q.candidates, candidates[i].Point)
	}
	return g.search(ctx, app, q, func(planner *capacity.Planner) (*answer, []string, error) {
		if q.RateGiven && planner.Shared == nil {
			printNotes(app.Stderr, []string{"workload.rate is not used: goodput is the largest rate; " +
				"sparseserve plan finds what to buy for a rate"})
		}
		all, notes, err := planner.Do(ctx, q.Goodput, candidates)
		asked := answers.Asked(q.Configs()...)
		for i := range all {
			all[i].Asked = asked
		}
		return &answer{all, func(name string) *doc.Doc { return answers.Goodputs(name, all) },
			func() ([]run.File, error) { return capacity.GoodputFiles(all) }}, notes, err
	})
}
