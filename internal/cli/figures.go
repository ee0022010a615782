package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sparseserve/sparseserve/experiments/papers"
	"github.com/sparseserve/sparseserve/figures"
)

type figuresCmd struct {
	Folders []string `arg:"" optional:"" name:"DIR" help:"Result folders; those of several models make several panels. Default: out/default."`
	Out     string   `placeholder:"DIR" help:"Where the PNGs and their CSVs go. Default: the first result folder, and out/paper with --paper."`
	Paper   bool     `help:"Draw the figures of the papers, after running what they need. Runs that out/paper/points keeps are not made again."`
	Only    []string `placeholder:"NAME" help:"With --paper: experiments to run, as in fig10a. May be repeated."`
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
	draw := func() ([]string, error) { return figures.DrawFolders(out, folders) }
	if _, err := os.Stat(filepath.Join(folders[0], "compare.csv")); err == nil && len(folders) == 1 {
		draw = func() ([]string, error) { return figures.DrawComparison(out, folders[0]) }
	}
	files, err := draw()
	if err != nil {
		return err
	}
	printPaths(app, files)
	return nil
}

// paper runs the experiments of the paper and draws its figures.
func (f *figuresCmd) paper(ctx context.Context, app *App) error {
	out := f.Out
	if out == "" {
		out = paperFolder
	}
	results := filepath.Join(out, "results")
	if !f.Redraw {
		studies := papers.Studies{Dir: results, Workers: f.Workers}
		if err := runStudies(ctx, app, out, studies, f.Only...); err != nil {
			return err
		}
	}
	notes, err := papers.OtherVersions(results, app.Program())
	if err != nil {
		return err
	}
	printNotes(app.Stderr, notes)
	files, err := figures.DrawPaper(out, results)
	if err != nil {
		return err
	}
	printPaths(app, files)
	return nil
}

func printPaths(app *App, files []string) {
	for _, path := range files {
		fmt.Fprintln(app.Stdout, path)
	}
}
