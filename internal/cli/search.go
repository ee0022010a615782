package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

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
	taskFlags
}

// question is the question of goodput or plan.
type question struct {
	command, file string
	unit          string // of its progress
	sets, cards   []string
	folder        string // name of the results
	*config.Sweep
	find func(*capacity.Planner) (*answer, error)
}

// load reads the configuration.
func (q *question) load(ctx context.Context) (err error) {
	q.file = cmp.Or(q.file, experiments.Default)
	if q.Sweep, err = config.LoadPlan(ctx, q.file, q.sets, q.cards...); err != nil {
		return err
	}
	q.folder = cmp.Or(q.folder, q.Name+settingsName(q.sets))
	return nil
}

// search finds the answer of a question. All tasks of a job search for the answer, one of them
// makes each run, and the same command without --tasks collects the runs.
func (f *searchFlags) search(ctx context.Context, app *App, q *question) (err error) {
	if f.Tasks > 0 {
		return f.share(app, f.Out, f.Points, func(store *run.Store) error {
			_, err := q.find(&capacity.Planner{Store: store, Run: app.Run, Workers: 1,
				Planned: func(int) {}, Shared: &run.Shared{Task: f.Task, Tasks: f.Tasks}})
			return err
		})
	}
	asked, err := run.Ask(q.command, q.folder, q.file, slices.Concat(q.sets, q.cards), q.Paths())
	if err != nil {
		return err
	}
	folder, err := f.open(filepath.Join(q.command, q.folder), app.Version, asked, f.Points,
		run.ErrTaken)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	return f.answer(ctx, app, folder, q.unit, func(bar *progress) (*answer, error) {
		return q.find(&capacity.Planner{Store: folder.Store, Run: app.Run, Workers: int(f.Workers),
			Planned: bar.planned, Finished: bar.finished, Say: bar.say})
	})
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
	if err := q.load(ctx); err != nil {
		return err
	}
	if q.Plan == nil {
		return fmt.Errorf("plan %s: there is no table [plan]; --set plan.prices=mid adds one, and "+
			"sparseserve goodput %[1]s finds the largest rate", p.Config)
	}
	offers, err := capacity.OffersOf(ctx, q.Sweep)
	if err != nil {
		return err
	}
	q.find = func(planner *capacity.Planner) (*answer, error) {
		bought, err := planner.Purchase(ctx, offers)
		return &answer{bought, func(name string) *doc.Doc { return answers.Purchase(name, bought) },
			bought.Files}, err
	}
	return p.search(ctx, app, q)
}

type goodputCmd struct {
	configArg
	searchFlags
}

// Run implements the command.
func (g *goodputCmd) Run(ctx context.Context, app *App) error {
	q := &question{command: "goodput", unit: "runs", file: g.Config, sets: g.Set}
	if err := q.load(ctx); err != nil {
		return err
	}
	if q.Plan != nil {
		return fmt.Errorf("goodput %s: the table [plan] asks what to buy: sparseserve plan %[1]s",
			g.Config)
	}
	candidates, err := capacity.Candidates(ctx, q.Sweep)
	if err != nil {
		return err
	}
	q.find = func(planner *capacity.Planner) (*answer, error) {
		if q.RateGiven && planner.Shared == nil {
			printNotes(app.Stderr, []string{"workload.rate is not used: goodput is the largest rate; " +
				"sparseserve plan finds what to buy for a rate"})
		}
		all, err := planner.Do(ctx, q.Goodput, candidates)
		asked := answers.Asked(q.Variants...)
		for i := range all {
			all[i].Asked = asked
		}
		return &answer{all, func(name string) *doc.Doc { return answers.Goodputs(name, all) },
			func() ([]run.File, error) { return capacity.GoodputFiles(all) }}, err
	}
	return g.search(ctx, app, q)
}
