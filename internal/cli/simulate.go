package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments"
	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/answers"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

type simulateCmd struct {
	configArg
	settings
	resultFlags
	storeFlags
	taskFlags
	liveFlags
}

// Run implements the command.
func (s *simulateCmd) Run(ctx context.Context, app *App) (err error) {
	sweep, err := config.LoadSweep(ctx, cmp.Or(s.Config, experiments.Default), s.Set)
	if err != nil {
		return err
	}
	head, err := headOf(ctx, app, sweep.Variants)
	if err != nil {
		return err
	}
	q, err := s.question(ctx, sweep)
	if err != nil {
		return err
	}
	points := q.Runs
	if s.Tasks > 0 {
		return s.share(app, s.Out, s.Points, func(store *run.Store) error {
			var own []config.Point // every n-th
			for i := s.Task % s.Tasks; i < len(points); i += s.Tasks {
				own = append(own, points[i])
			}
			grid := run.Grid{Run: app.Run, Workers: 1, Again: func(int) {}}
			_, err := store.Do(ctx, grid, own)
			return err
		})
	}
	simulate, workers, err := s.runner(app, len(q.Runs))
	if err != nil {
		return err
	}
	folder, err := s.open(app, sweep, q)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	if s.Force && s.Points == "" && len(q.Axes) == 0 {
		if err := folder.Store.Forget(points); err != nil {
			return err
		}
	}
	if s.Record != "" {
		kept := append(sweep.Paths(), s.Config, s.Weights, folder.Dir())
		if err := files.CheckOutput(s.Record, kept...); err != nil {
			return fmt.Errorf("--record: %w", err)
		}
	}
	missing, err := folder.Store.Missing(ctx, points, false)
	if err != nil {
		return err
	}
	s.announce(app, sweep, head, folder, len(points), len(missing))
	bar := newProgress(app.Stderr, "requests")
	bar.planned(run.Requests(missing))
	grid := run.Grid{Run: simulate, Workers: cmp.Or(workers, int(s.Workers)), Partial: true,
		Finished: bar.finished}
	if s.Live == "" {
		grid.Again = bar.planned
	}
	if !s.JSON && len(q.Axes) == 0 {
		grid.Made = early(points, earlyEvery, func(done []run.Result) error {
			runs := answerOf(sweep, q, folder, run.Summaries(done))
			return drawEarly(ctx, bar, folder.Dir(), runs, len(points))
		})
	}
	results, runErr := folder.Store.Do(ctx, grid, points)
	bar.close()
	printNotes(app.Stderr, folder.Store.Notes())
	if len(results) == 0 {
		return runErr
	}
	sums := run.Summaries(results)
	written, err := folder.Finish(results)
	if err == nil {
		err = s.report(ctx, app, answerOf(sweep, q, folder, sums), q, folder, written)
	}
	if stopped(ctx, runErr) || ctx.Err() != nil && runErr == nil {
		runErr = errInterrupted
	}
	switch {
	case err != nil:
		return err
	case runErr != nil:
		return fmt.Errorf("%w; %s and are kept in %s", runErr, finishedOf(results, len(points)),
			folder.Dir())
	}
	if !slices.ContainsFunc(sums, func(s metrics.Summary) bool { return s.Completed > 0 }) {
		return errors.New("no request was served; the warnings say why")
	}
	return nil
}

// announce prints the runs that follow.
func (s *simulateCmd) announce(app *App, sweep *config.Sweep, head func(points int) string,
	folder *run.Folder, points, missing int) {
	if s.JSON {
		return
	}
	printNotes(app.Stderr, sweep.Notes)
	if s.Config == "" && !sweep.Own {
		fmt.Fprintf(app.Stdout, "No FILE given: running the built-in experiment %q; --set "+
			"KEY=VALUE changes it.\n", sweep.Name)
	}
	fmt.Fprint(app.Stdout, head(points))
	if before := points - missing; before > 0 {
		fmt.Fprintf(app.Stdout, "%d of %d runs finished before and are kept in %s.\n", before, points,
			inCell(folder.Store.Dir()))
	}
}

// question returns the question of the runs of a configuration or sweep.
func (s *simulateCmd) question(ctx context.Context, sweep *config.Sweep) (*run.Question, error) {
	q, err := run.AskSweep(ctx, sweep)
	if q.Asked = s.Set; err != nil || len(sweep.Axes) == 0 {
		return q, err
	}
	texts, err := config.Texts(cmp.Or(s.Config, experiments.Default))
	q.Text = strings.Join(texts, "\n")
	return q, err
}

// open opens the result folder. Without --out it is the first of out/NAME, out/NAME-2, .. that is
// new or has the same question, and that no other process has locked.
func (s *simulateCmd) open(app *App, sweep *config.Sweep, q *run.Question) (*run.Folder, error) {
	version, name := app.Version, sweep.Name+settingsName(s.Set)
	if s.Config == "" && sweep.Own { // only the settings determine the runs
		name = strings.TrimPrefix(settingsName(s.Set), "-")
	}
	if s.Live != "" { // a measurement of this machine, made with these flags
		version, name = fmt.Sprintf("%s %+v", app.LiveVersion, s.liveFlags), name+"-live"
	}
	return s.resultFlags.open(name, version, q, s.Points, run.ErrTaken, run.ErrLocked)
}

// finishedOf reports how many runs finished, completely or partly.
func finishedOf(results []run.Result, of int) string {
	part := 0
	for i := range results {
		if results[i].Summary.Interrupted != "" {
			part++
		}
	}
	text := fmt.Sprintf("%d of %d runs finished", len(results)-part, of)
	if part > 0 {
		text += fmt.Sprintf(", %d in part,", part)
	}
	return text
}

// report prints the results, and draws them if the runs have no axes.
func (s *simulateCmd) report(ctx context.Context, app *App, runs *answers.Runs, q *run.Question,
	folder *run.Folder, written []string) (err error) {
	out, d := folder.Dir(), runs.Doc()
	if len(q.Axes) == 0 && !s.JSON {
		if d.Figures, err = runs.Figures(); err != nil {
			return err
		}
	}
	d.Lead = nil // printed before the runs
	if err := app.show(ctx, out, d, s.JSON, runs.Sums, written); err != nil || s.JSON {
		return err
	}
	app.namePoints(folder)
	if len(q.Axes) > 0 || ctx.Err() != nil {
		fmt.Fprintf(app.Stdout, "Pictures: sparseserve report %s --format png\n", inCell(out))
	}
	return nil
}

// answerOf returns the results of a folder's runs.
func answerOf(sweep *config.Sweep, q *run.Question, folder *run.Folder,
	sums []metrics.Summary) *answers.Runs {
	runs := &answers.Runs{Name: q.Name, Asked: []string{answers.Ran(sweep.Variants...)}, Sums: sums,
		Settings: q.Settings(), DefaultTBT: answers.DefaultTBT(sweep.Variants...)}
	var units []string
	for i := range q.Runs {
		p := &q.Runs[i]
		runs.Systems = append(runs.Systems, p.System)
		if unit := capacity.RateUnit(&p.Workload); !slices.Contains(units, unit) {
			units = append(units, unit)
		}
	}
	runs.Unit = strings.Join(units, " or ")
	for i := range sums {
		runs.Folders = append(runs.Folders, folder.Place(sums[i].Name))
	}
	return runs
}

// headOf chooses rates for variants that need them and name none. It returns the description of a
// number of runs, and how rates were chosen.
func headOf(ctx context.Context, app *App, all [][]config.Point) (func(points int) string, error) {
	bar := newProgress(app.Stderr, "requests of short runs that show what the systems sustain")
	defer bar.close()
	short := func(ctx context.Context, p config.Point, sink run.Sink) (metrics.Summary, error) {
		bar.planned(p.Workload.Requests)
		sink.Finished = bar.finished
		return app.Run(ctx, p, sink)
	}
	chosen, err := capacity.ChooseRates(ctx, short, all)
	tooLong := "" // says which share of prompts is truncated or refused
	if err == nil {
		tooLong, err = capacity.TooLong(all)
	}
	if ctx.Err() != nil {
		return nil, errInterrupted
	}
	return func(points int) string {
		text := fmt.Sprintf("%s; %s: %s", inCell(answers.Asked(all...)), answers.Seeds(all...),
			answers.Count(points, "run"))
		if tooLong != "" {
			text += "; " + tooLong
		}
		text += ".\n"
		for i := range chosen {
			of := ""
			if len(chosen) > 1 {
				of = chosen[i].Model + ": "
			}
			text += fmt.Sprintf("No rate is set. %s%s; --set workload.rate=LIST names others.\n", of,
				&chosen[i])
		}
		return text
	}, err
}
