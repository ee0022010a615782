package cli

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/validate"
	"github.com/sparseserve/sparseserve/figures"
	"github.com/sparseserve/sparseserve/internal/answers"
)

type validateCmd struct {
	Run    validateRun    `cmd:"" default:"withargs" help:"Make every run of an experiment live and simulated, and compare them. The default."`
	Reuse  validateReuse  `cmd:"" help:"Compare live runs that a result folder keeps, whatever profile, device and program made them."`
	Ablate validateAblate `cmd:"" help:"Price the steps of kept live runs without each part of the cost model in turn, and print what it is worth."`
}

// validateFlags are flags of commands that make live runs.
type validateFlags struct {
	settings
	Out        string   `placeholder:"DIR" help:"Result folder. Finished runs in it are not made again. Default: out/validate/ and the name of the configuration."`
	Live       liveMode `default:"gpu" help:"What runs live: the GPU of this machine, or with --live=reference a reference in Go that is fit for tiny models. Default: ${default}."`
	Weights    string   `placeholder:"DIR" help:"A folder of safetensors with its config.json. Default: drawn from the seed."`
	SplitEvery int64    `hidden:"" placeholder:"N" default:"${splitEvery}" help:"Every n-th live step is split into phases. Default: ${default}."`
}

// comparedFlags are flags of commands that compare live and simulated runs.
type comparedFlags struct {
	JSON    bool `name:"json" help:"Print one JSON array, an object a run and metric, and nothing else."`
	Workers uint `placeholder:"N" help:"Simulations at a time. Default, and 0: one a core. Live runs are made one by one, before."`
}

type validateRun struct {
	Config string `arg:"" name:"FILE" complete:"experiments" help:"TOML file of a configuration, as of simulate."`
	validateFlags
	comparedFlags
}

// Run implements the command.
func (c *validateRun) Run(ctx context.Context, app *App) error {
	return c.compare(ctx, app, c.Config, &c.comparedFlags, validate.Validation{})
}

type validateReuse struct {
	From string `arg:"" name:"FILE|DIR" complete:"experiments" help:"Configuration of the runs: they are simulated anew, and what is missing runs live where there is a library to do so. Or a result folder: its table is computed anew from its files, and nothing runs."`
	validateFlags
	comparedFlags
}

// Run implements the command.
func (c *validateReuse) Run(ctx context.Context, app *App) error {
	if !isFolder(c.From) {
		return c.compare(ctx, app, c.From, &c.comparedFlags, validate.Validation{Kept: true})
	}
	if len(c.Set) > 0 || c.Out != "" || c.Weights != "" {
		return fmt.Errorf("validate reuse %s: a result folder has its own configuration; leave --set, "+
			"--out and --weights out", c.From)
	}
	report, err := validate.Recompute(c.From)
	if err != nil {
		return err
	}
	return printValidation(ctx, app, c.From, report, c.JSON)
}

// compare makes the missing runs and prints the differences between live and simulated runs.
func (f *validateFlags) compare(ctx context.Context, app *App, cfg string, c *comparedFlags,
	v validate.Validation) error {
	v.Workers = int(c.Workers)
	report, err := f.runs(ctx, app, cfg, &v)
	if err != nil {
		return err
	}
	return printValidation(ctx, app, v.Dir, report, c.JSON)
}

// runs makes the missing runs. It reads the sweep to the end even when interrupted, because the
// error reports which runs are kept.
func (f *validateFlags) runs(ctx context.Context, app *App, cfg string, v *validate.Validation) (
	*validate.Report, error) {
	sweep, err := config.LoadSweep(cfg, f.Set, nil)
	if err != nil {
		return nil, err
	}
	live := liveFlags{Live: f.Live, Weights: f.Weights, SplitEvery: f.SplitEvery}
	machine, err := live.machine()
	if err != nil {
		return nil, err
	}
	bar := newProgress(app.Stderr, "requests")
	v.Dir = cmp.Or(f.Out, filepath.Join("out", "validate", sweep.Name))
	v.Sweep, v.Live = sweep, machine
	v.LiveProgram, v.Program, v.Simulate = app.LiveVersion, app.Version, app.Run
	v.Planned, v.Finished = bar.planned, bar.finished
	report, notes, err := v.Do(ctx)
	bar.close()
	printNotes(app.Stderr, notes)
	if stopped(ctx, err) {
		err = fmt.Errorf("%w%s", errInterrupted, strings.TrimPrefix(err.Error(), ctx.Err().Error()))
	}
	return report, err
}

// printValidation draws and prints the differences between live and simulated runs.
func printValidation(ctx context.Context, app *App, out string, report *validate.Report,
	json bool) error {
	d := answers.Validation(report)
	pictures, err := figures.Draw(ctx, out, d.Figures)
	switch {
	case err != nil:
		return err
	case json:
		return printJSON(app, report.Comparisons())
	}
	all := "sparseserve report " + inCell(out) + " --format text"
	if err := printAnswer(app.Stdout, d, all); err != nil {
		return err
	}
	listFiles(app.Stdout, out, append(report.Files, pictures...))
	_, err = fmt.Fprintf(app.Stdout, "Other errors: %s\n", all)
	return err
}

type validateAblate struct {
	Cards []string `arg:"" name:"DIR[,PROFILE]" help:"Result folder of each card, and its profile, by default what the runs name."`
	printFlags
}

// Run implements the command.
func (c *validateAblate) Run(app *App) error {
	var cards []validate.AblationCard
	for _, card := range c.Cards {
		dir, profile, _ := strings.Cut(card, ",")
		cards = append(cards, validate.AblationCard{Dir: dir, Profile: profile})
	}
	a, err := validate.Ablate(cards)
	if err != nil {
		return err
	}
	return c.print(app, a, answers.Ablation(a))
}
