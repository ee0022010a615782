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

// searchFlags are flags of commands that make runs until they have an answer.
type searchFlags struct {
	settings
	resultFlags
	storeFlags
}

// question is the question of such a command.
type question struct {
	command, file string
	folder        string   // name of the results
	asked, inputs []string // settings and other flags, and files that are read
	unit          string   // of its progress
	find          func(*capacity.Planner) (*answer, error)
}

// answer is the answer to a question: its data as JSON, its document and its files.
type answer struct {
	data  any
	doc   func(name string) *doc.Doc
	files func() ([]run.File, error)
}

// search finds the answer of a question and writes it with its figures into its folder. It prints
// the answer as JSON, or as text with the names of its files.
func (f *searchFlags) search(ctx context.Context, app *App, q *question) (err error) {
	asked, err := run.Ask(q.command, q.folder, q.file, q.asked, q.inputs)
	if err != nil {
		return err
	}
	folder, err := f.open(filepath.Join(q.command, q.folder), app.Version, asked, f.Points,
		run.ErrTaken)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	bar := newProgress(app.Stderr, q.unit)
	a, err := q.find(&capacity.Planner{Store: folder.Store, Run: app.Run, Workers: int(f.Workers),
		Planned: bar.planned, Finished: bar.finished, Say: bar.say})
	bar.close()
	printNotes(app.Stderr, folder.Store.Notes())
	if err != nil {
		return goesOn(ctx, err)
	}
	files, err := a.files()
	if err != nil {
		return err
	}
	written, err := folder.Write(files...)
	if err != nil {
		return err
	}
	out := folder.Dir()
	err = app.show(ctx, out, a.doc(filepath.Base(out)), f.JSON, a.data, written)
	if err == nil && !f.JSON {
		app.namePoints(folder)
	}
	return err
}

// planFile is the configuration of goodput or plan, whose search the tasks of a job can share.
type planFile struct {
	configArg
	searchFlags
	taskFlags
}

// load reads the configuration with settings and cards, and returns its question.
func (f *planFile) load(ctx context.Context, q *question, sets, cards []string) (*config.Sweep,
	error) {
	q.file, q.asked = cmp.Or(f.Config, experiments.Default), slices.Concat(sets, cards)
	sweep, err := config.LoadPlan(ctx, q.file, sets, cards...)
	if err != nil {
		return nil, err
	}
	q.inputs, q.folder = sweep.Paths(), cmp.Or(q.folder, sweep.Name+settingsName(sets))
	return sweep, nil
}

// search finds the answer of a question. All tasks of a job search for the answer, one of them
// makes each run, and the same command without --tasks collects the runs.
func (f *planFile) search(ctx context.Context, app *App, q *question) error {
	if f.Tasks <= 0 {
		return f.searchFlags.search(ctx, app, q)
	}
	return f.share(app, f.Out, f.Points, func(store *run.Store) error {
		_, err := q.find(&capacity.Planner{Store: store, Run: app.Run, Workers: 1,
			Planned: func(int) {}, Shared: &run.Shared{Task: f.Task, Tasks: f.Tasks}})
		return err
	})
}

type planCmd struct {
	planFlags
	planFile
}

// Run implements the command.
func (p *planCmd) Run(ctx context.Context, app *App) error {
	q, sets := &question{command: "plan", unit: "candidates"}, append(p.sets(), p.Set...)
	cards, err := p.cards()
	if err != nil {
		return err
	}
	if p.Config == "" {
		q.folder = p.name(slices.Clone(cards)) + settingsName(p.Set)
		if sets, err = p.alone(p.Set); err != nil {
			return err
		}
	}
	sweep, err := p.load(ctx, q, sets, cards)
	if err != nil {
		return err
	}
	if sweep.Plan == nil {
		return fmt.Errorf("plan %s: there is no table [plan]; --set plan.prices=mid adds one, and "+
			"sparseserve goodput %[1]s finds the largest rate", p.Config)
	}
	offers, err := capacity.OffersOf(ctx, sweep)
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

type goodputCmd struct{ planFile }

// Run implements the command.
func (g *goodputCmd) Run(ctx context.Context, app *App) error {
	q := &question{command: "goodput", unit: "runs"}
	sweep, err := g.load(ctx, q, g.Set, nil)
	if err != nil {
		return err
	}
	if sweep.Plan != nil {
		return fmt.Errorf("goodput %s: the table [plan] asks what to buy: sparseserve plan %[1]s",
			g.Config)
	}
	candidates, err := capacity.Candidates(ctx, sweep)
	if err != nil {
		return err
	}
	q.find = func(planner *capacity.Planner) (*answer, error) {
		if sweep.RateGiven && planner.Shared == nil {
			printNotes(app.Stderr, []string{"workload.rate is not used: goodput is the largest rate; " +
				"sparseserve plan finds what to buy for a rate"})
		}
		all, err := planner.Do(ctx, sweep.Goodput, candidates)
		asked := answers.Asked(sweep.Variants...)
		for i := range all {
			all[i].Asked = asked
		}
		return &answer{all, func(name string) *doc.Doc { return answers.Goodputs(name, all) },
			func() ([]run.File, error) { return capacity.GoodputFiles(all) }}, err
	}
	return g.search(ctx, app, q)
}
