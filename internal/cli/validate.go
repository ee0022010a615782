package cli

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/validate"
	"github.com/sparseserve/sparseserve/internal/answers"
)

type validateCmd struct {
	Run    validateRun    `cmd:"" default:"withargs" help:"Make every run of an experiment live and simulated, and compare them. The default."`
	Reuse  validateReuse  `cmd:"" help:"Compare live runs that a result folder keeps, whatever profile, device and program made them."`
	Ablate validateAblate `cmd:"" help:"Price the steps of kept live runs without each part of the cost model in turn, and print what it is worth."`
}

// validateFlags are flags of commands that make live and simulated runs and compare them.
type validateFlags struct {
	settings
	Out        string   `placeholder:"DIR" help:"Result folder. Finished runs in it are not made again. Default: out/validate/ and the name of the configuration."`
	Live       liveMode `default:"gpu" help:"What runs live: the GPU of this machine, or with --live=reference a reference in Go that is fit for tiny models. Default: ${default}."`
	Weights    string   `placeholder:"DIR" help:"A folder of safetensors with its config.json. Default: drawn from the seed."`
	SplitEvery int64    `hidden:"" placeholder:"N" default:"${splitEvery}" help:"Every n-th live step is split into phases. Default: ${default}."`
	JSON       bool     `name:"json" help:"Print one JSON array, an object a run and metric, and nothing else."`
	Workers    uint     `placeholder:"N" help:"Simulations at a time. Default, and 0: one a core. Live runs are made one by one, before."`
}

type validateRun struct {
	Config string `arg:"" name:"FILE" complete:"experiments" help:"TOML file of a configuration, as of simulate."`
	validateFlags
}

// Run implements the command.
func (c *validateRun) Run(ctx context.Context, app *App) error {
	return c.compare(ctx, app, c.Config, validate.Validation{})
}

type validateReuse struct {
	From string `arg:"" name:"FILE|DIR" complete:"experiments" help:"Configuration of the runs: they are simulated anew, and what is missing runs live where there is a library to do so. Or a result folder: its table is computed anew from its files, and nothing runs."`
	validateFlags
}

// Run implements the command.
func (c *validateReuse) Run(ctx context.Context, app *App) error {
	if !isFolder(c.From) {
		return c.compare(ctx, app, c.From, validate.Validation{Kept: true})
	}
	if len(c.Set) > 0 || c.Out != "" || c.Weights != "" {
		return fmt.Errorf("validate reuse %s: a result folder has its own configuration; leave --set, "+
			"--out and --weights out", c.From)
	}
	report, err := validate.Recompute(c.From)
	if err != nil {
		return err
	}
	return c.print(ctx, app, c.From, report)
}

// compare makes the missing runs and prints the differences between live and simulated runs. It
// reads the sweep to the end even when interrupted, because the error reports which runs are kept.
func (f *validateFlags) compare(ctx context.Context, app *App, cfg string,
	v validate.Validation) error {
	sweep, err := config.LoadSweep(context.WithoutCancel(ctx), cfg, f.Set)
	if err != nil {
		return err
	}
	live := liveFlags{Live: f.Live, Weights: f.Weights, SplitEvery: f.SplitEvery}
	if v.Live, err = live.machine(); err != nil {
		return err
	}
	bar := newProgress(app.Stderr, "requests")
	v.Dir = cmp.Or(f.Out, filepath.Join("out", "validate", sweep.Name))
	v.Sweep, v.Workers, v.Simulate = sweep, int(f.Workers), app.Run
	v.LiveProgram, v.Program = app.LiveVersion, app.Version
	v.Planned, v.Finished = bar.planned, bar.finished
	report, notes, err := v.Do(ctx)
	bar.close()
	printNotes(app.Stderr, notes)
	if stopped(ctx, err) {
		err = fmt.Errorf("%w%s", errInterrupted, strings.TrimPrefix(err.Error(), ctx.Err().Error()))
	}
	if err != nil {
		return err
	}
	return f.print(ctx, app, v.Dir, report)
}

// print draws and prints the differences between live and simulated runs.
func (f *validateFlags) print(ctx context.Context, app *App, out string,
	report *validate.Report) error {
	err := app.show(ctx, out, answers.Validation(report), f.JSON, report.Comparisons(), report.Files)
	if err == nil && !f.JSON {
		_, err = fmt.Fprintf(app.Stdout, "Other errors: %s\n", reportOf(out))
	}
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
