package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/papers"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/figures"
	"github.com/sparseserve/sparseserve/internal/answers"
)

type figuresCmd struct {
	Folders []string `arg:"" optional:"" name:"DIR" help:"Result folders; those of several models make several panels. Default: out/default."`
	Out     string   `placeholder:"DIR" help:"Where the pictures and their CSVs go. Default: the first result folder, and out/paper with --paper."`
	Format  []string `enum:"png,svg,pdf" default:"png" placeholder:"FORMAT" help:"Formats of the pictures: png, svg and pdf, as in --format png,pdf. Default: ${default}."`
	Paper   bool     `help:"Draw the figures of the papers, after running what they need. Runs that out/paper/points keeps are not made again."`
	Only    []string `placeholder:"NAME" help:"With --paper: figures or experiments, as in fig10 or fig10a, to run and draw; nothing else is drawn. May be repeated."`
	Redraw  bool     `help:"With --paper: run nothing, draw the results that are there."`
	Workers int      `placeholder:"N" help:"With --paper: runs at a time. Default, and 0: one a core."`
}

// Validate is called by the parser.
func (f *figuresCmd) Validate() error {
	switch {
	case f.Workers < 0:
		return fmt.Errorf("--workers %d: must be at least 1, or 0 for one a core", f.Workers)
	case f.Paper && len(f.Folders) > 0:
		return errors.New("--paper runs experiments of its own; leave out DIR")
	case !f.Paper && (f.Redraw || len(f.Only) > 0 || f.Workers > 0):
		return errors.New("--redraw, --only and --workers go with --paper")
	}
	return nil
}

func (f *figuresCmd) Run(ctx context.Context, app *App) error {
	if f.Paper {
		return f.paper(ctx, app)
	}
	folders := f.Folders
	if len(folders) == 0 {
		folders = []string{"out/default"}
	}
	out := f.Out
	if out == "" {
		out = folders[0]
	}
	d, err := answers.Read(folders[0], folders[1:]...)
	if err == nil {
		err = noteRuns(app, folders...)
	}
	if err != nil {
		return err
	}
	if len(d.Figures) == 0 {
		return fmt.Errorf("%s: there is nothing to draw", strings.Join(folders, ", "))
	}
	files, err := figures.Draw(ctx, out, d.Figures, f.Format...)
	printPaths(app, files)
	return err
}

// noteRuns prints which pictures lack a run because its requests are not kept, or because it served
// none.
func noteRuns(app *App, folders ...string) error {
	for _, dir := range folders {
		if kind, err := answers.KindOf(dir); err != nil || kind != run.SummaryFile {
			return err
		}
		without, served, err := answers.WithoutRequests(dir)
		if err != nil {
			return err
		}
		if served == 0 {
			printNotes(app.Stderr, []string{dir + ": no run finished a request, so there is nothing of " +
				"it to draw; the warnings of its runs say why"})
		}
		if without > 0 {
			printNotes(app.Stderr, []string{fmt.Sprintf("%s: %d of %d runs have no %s, so the "+
				"distributions of latencies (cdf) lack them; the command that made the folder makes "+
				"them again", dir, without, served, run.RequestsCSV)})
		}
	}
	return nil
}

// paper runs the experiments of the paper and draws its figures.
func (f *figuresCmd) paper(ctx context.Context, app *App) error {
	out := f.Out
	if out == "" {
		out = paperFolder
	}
	results := filepath.Join(out, "results")
	needed, err := experimentsOf(f.Only)
	if err != nil {
		return err
	}
	if !f.Redraw && (len(needed) > 0 || len(f.Only) == 0) {
		studies := papers.Studies{Dir: results, Workers: f.Workers}
		if err := runStudies(ctx, app, out, studies, needed...); err != nil {
			return err
		}
	}
	notes, err := papers.OtherVersions(results, app.Version)
	if err != nil {
		return err
	}
	printNotes(app.Stderr, notes)
	drawn, err := papers.Figures(results, f.Only, answers.Ran)
	if err != nil {
		return err
	}
	files, err := figures.Draw(ctx, out, drawn, f.Format...)
	printPaths(app, files)
	return err
}

// experimentsOf lists the experiments that figures, or experiments themselves, need.
func experimentsOf(names []string) ([]string, error) {
	var needed []string
	for _, name := range names {
		more, ok := papers.FigureExperiments(name)
		if !ok {
			known := slices.Compact(slices.Sorted(slices.Values(
				slices.Concat(papers.PaperExperiments(), papers.FigureNames()))))
			return nil, fmt.Errorf("--only %s: no such figure or experiment of the papers%s; there are %s",
				name,
				config.DidYouMean(name, known), strings.Join(known, ", "))
		}
		needed = append(needed, more...)
	}
	return needed, nil
}

func printPaths(app *App, files []string) {
	for _, path := range files {
		fmt.Fprintln(app.Stdout, inCell(path))
	}
}
