package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments"
	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/answers"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/traces"
)

type sweepCmd struct {
	configArg
	settings
	resultFlags
	storeFlags
	jobFlags
}

// sweepExample is a whole small file of a sweep.
const sweepExample = `model = "llama3-8b"
gpu = "h100-80gb"
seed = [1, 2]

[system]
preset = ["vllm", "sparseserve"]

[[axis]]                                   # grid: every combination
grid.workload.rate = [0.5, 1.0]
grid.selection.budget_tokens = [1024, 2048]

[[axis]]                                   # zip: first with first; list: tables of keys
zip.model = ["llama3-8b", "llama3.1-8b"]
`

// Help is shown below the command's help.
func (s *sweepCmd) Help() string { return wholeFile(sweepExample) }

// wholeFile introduces a file and indents it, so that help keeps its lines.
func wholeFile(text string) string {
	return "A whole small file (sparseserve list keys has all keys):\n\n  " +
		strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")
}

func (s *sweepCmd) Run(ctx context.Context, app *App) (err error) {
	cluster, err := s.cluster(s.JSON)
	if err != nil {
		return err
	}
	watch, end := app.watch(ctx)
	defer end()
	sweep, err := config.LoadSweep(cmp.Or(s.Config, experiments.Default), s.Set, watch)
	if err != nil {
		return err
	}
	if cluster != nil {
		if err := checkJobWords(append(s.Set, s.Config, s.Out, s.Points)...); err != nil {
			return err
		}
	}
	head, err := headOf(ctx, app, sweep.Configs()...)
	if err != nil {
		return err
	}
	q, err := run.AskSweep(sweep)
	if err != nil {
		return err
	}
	folder, err := s.open(app, q)
	if err != nil {
		return err
	}
	out := folder.Dir()
	defer func() { err = errors.Join(err, folder.Close()) }()

	points := q.Points()
	missing, _, err := folder.Store.Missing(points, watch)
	if err != nil {
		return err
	}
	if cluster != nil {
		return s.writeJob(ctx, app, cluster, folder, points, missing)
	}
	if !s.JSON {
		printNotes(app.Stderr, sweep.Variants[0].Config.Notes)
		head.print(app.Stdout, len(points))
		if before := len(points) - len(missing); before > 0 {
			fmt.Fprintf(app.Stdout, "%d of them finished before.\n", before)
		}
	}
	bar := newProgress(app.Stderr, "requests")
	bar.planned(requestsOf(missing))
	results, notes, runErr := folder.Store.Do(ctx,
		run.Grid{Run: app.Run, Workers: int(s.Workers), Finished: bar.finished, Again: bar.planned},
		points)
	bar.close()
	printNotes(app.Stderr, notes)
	if cause := ctx.Err(); cause != nil && errors.Is(runErr, cause) {
		runErr = fmt.Errorf("%w; %d of %d runs are finished and kept: the same command runs the rest",
			errInterrupted, len(results), len(points))
	}
	if runErr != nil {
		return runErr
	}
	written, err := folder.Finish(results)
	if err != nil {
		return err
	}
	sums := run.Summaries(results)
	if s.JSON {
		return errors.Join(printJSON(app, sums), nothingServed(sums))
	}
	if err := printDoc(app.Stdout, s.answer(q, sums).Doc(), out); err != nil {
		return err
	}
	printFiles(app.Stdout, out, written, folder.Store.Dir())
	pictures := "Pictures"
	if drawn, err := files.Glob(out, "*.png"); err == nil && len(drawn) > 0 &&
		len(missing) > 0 {
		pictures = "Pictures, of which those in the folder lack the new runs"
	}
	fmt.Fprintf(app.Stdout, "%s: sparseserve report %s --format png\n", pictures, inCell(out))
	return nothingServed(sums)
}

// open opens the result folder. Without --out it is the first of out/sweep/NAME, out/sweep/NAME-2,
// .. that is new or of this sweep.
func (s *sweepCmd) open(app *App, q *run.Question) (folder *run.Folder, err error) {
	texts, err := config.Texts(cmp.Or(s.Config, experiments.Default))
	if err != nil {
		return nil, err
	}
	q.Asked, q.Text = s.Set, strings.Join(texts, "\n")
	name := s.Out
	if name == "" {
		name = filepath.Join("out", "sweep", q.Name+settingsName(s.Set))
	}
	err = numbered(name, s.Out == "", func(out string) error {
		folder, err = run.OpenFolder(out, app.Version, q, s.Points, s.Force)
		return err
	}, run.ErrTaken)
	return folder, err
}

// writeJob writes a job of the missing points and how to submit it.
func (s *sweepCmd) writeJob(ctx context.Context, app *App, cluster run.Cluster,
	folder *run.Folder, points, missing []config.Point) error {
	if len(missing) == 0 {
		fmt.Fprintf(app.Stdout, "All of %s are finished; the same command without --job collects them."+
			"\n", count(len(points), "run"))
		return nil
	}
	if err := readableLater(missing); err != nil {
		return err
	}
	program, here, err := programHere()
	if err != nil {
		return err
	}
	bar := newProgress(app.Stderr, "points")
	bar.planned(len(missing))
	job, err := folder.WriteJob(ctx, cluster, program, here, missing, bar.finished)
	bar.close()
	if cause := ctx.Err(); cause != nil && errors.Is(err, cause) {
		return fmt.Errorf("%w; no job is written: the same command writes it", errInterrupted)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(app.Stdout, "%s of %d to make. ", count(len(missing), "run"), len(points))
	s.printSubmit(app.Stdout, job)
	return nil
}

// answer is the answer of a folder's runs.
func (s *sweepCmd) answer(q *run.Question, sums []sim.Summary) *answers.Runs {
	points := q.Points()
	runs := &answers.Runs{Name: q.Name, Sums: sums, Settings: q.Settings()}
	var units []string
	for i := range points {
		runs.Systems = append(runs.Systems, points[i].System)
		if unit := capacity.RateUnit(&points[i].Workload); !slices.Contains(units, unit) {
			units = append(units, unit)
		}
	}
	runs.Unit = strings.Join(units, " or ")
	return runs
}

func requestsOf(points []config.Point) int {
	specs := make([]traces.Spec, len(points))
	for i := range points {
		specs[i] = points[i].Workload
	}
	return traces.Count(specs...)
}

// printNotes says what was found and mended on the way.
func printNotes(w io.Writer, notes []string) {
	for _, n := range notes {
		fmt.Fprintf(w, "note: %s\n", oneLine(n))
	}
}
