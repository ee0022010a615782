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

// paperFolder is the folder of the papers' figures and results.
const paperFolder = "out/paper"

type paperCmd struct {
	Run     paperRun     `cmd:"" help:"Run experiments of the papers."`
	Claims  claimsCmd    `cmd:"" help:"Compare what the papers claim with what the simulator finds."`
	Figures paperFigures `cmd:"" help:"Draw the figures of the papers, after running what they need."`
}

// paperFlags set where the results of the papers' experiments are, and how they are made.
type paperFlags struct {
	Out     string `default:"${paperFolder}" placeholder:"DIR" help:"Where results, runs and figures are kept. Default: ${default}."`
	Workers uint   `placeholder:"N" help:"Runs at a time. Default, and 0: one a core."`
}

type paperRun struct {
	Names []string `arg:"" optional:"" name:"NAME" complete:"figures" help:"Experiments or figures, as in fig10a or fig10. Default: all but the long ones."`
	paperFlags
}

// Run implements the command.
func (p *paperRun) Run(ctx context.Context, app *App) error {
	return p.make(ctx, app, papers.Studies{Dir: p.results()})
}

// make runs the experiments that the command names, alone or by their figures.
func (p *paperRun) make(ctx context.Context, app *App, studies papers.Studies) error {
	needed, err := experimentsOf(p.Names)
	if err != nil || len(needed) == 0 && len(p.Names) > 0 {
		return err
	}
	return p.run(ctx, app, studies, needed...)
}

type paperFigures struct {
	paperRun
	All    bool   `help:"Draw all seeds, as claims do, which takes minutes. Default: the first seed alone."`
	Format string `enum:"png,svg,pdf" default:"png" help:"Format of the pictures: png, svg or pdf. Default: ${default}."`
}

// Run implements the command.
func (p *paperFigures) Run(ctx context.Context, app *App) error {
	studies := papers.Studies{Dir: p.results()}
	if !p.All {
		studies.Dir, studies.Sets = filepath.Join(p.Out, "first-seed"), []string{"seed=1"}
	}
	if err := p.make(ctx, app, studies); err != nil {
		return err
	}
	pictures, err := papers.Figures(studies.Dir, p.Names, answers.Ran)
	if err != nil {
		return err
	}
	drawn, err := figures.Draw(ctx, p.Out, pictures, p.Format)
	printPaths(app, drawn)
	return err
}

// experimentsOf lists the experiments for names of figures or experiments.
func experimentsOf(names []string) ([]string, error) {
	var needed []string
	for _, name := range names {
		more, ok := papers.FigureExperiments(name)
		if !ok {
			known := paperNames("")
			return nil, fmt.Errorf("%s: no such figure or experiment of the papers%s; there are %s", name,
				config.DidYouMean(name, known), strings.Join(known, ", "))
		}
		needed = append(needed, more...)
	}
	return needed, nil
}

// paperNames returns the names of the papers' experiments and figures.
func paperNames(string) []string {
	return slices.Compact(slices.Sorted(slices.Values(
		slices.Concat(papers.PaperExperiments(), papers.FigureNames()))))
}

// results returns the folder with the tables of each experiment.
func (p *paperFlags) results() string { return filepath.Join(p.Out, "results") }

// run runs experiments of the papers, with a progress bar on a terminal. Runs are stored below the
// folder.
func (p *paperFlags) run(ctx context.Context, app *App, studies papers.Studies,
	names ...string) (err error) {
	store, err := run.OpenStore(filepath.Join(p.Out, run.RunsFolder), app.Version, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	bar := newProgress(app.Stderr, "runs")
	studies.Store, studies.Run, studies.Workers = store, app.Run, int(p.Workers)
	studies.Planned, studies.Finished = bar.planned, bar.finished
	notes, err := studies.Do(ctx, names...)
	bar.close()
	printNotes(app.Stderr, notes)
	return goesOn(ctx, err)
}
