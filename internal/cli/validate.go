package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/validate"
	"github.com/sparseserve/sparseserve/figures"
	"github.com/sparseserve/sparseserve/internal/answers"
	"github.com/sparseserve/sparseserve/internal/show"
)

type validateCmd struct {
	Config     string   `arg:"" optional:"" name:"CONFIG" complete:"experiments" help:"TOML file of a configuration, with [[axis]] tables or without, as for sweep."`
	Set        []string `placeholder:"KEY=VALUE" complete:"settings" sep:"none" help:"Set a key that is no axis, as in workload.requests=20. May be repeated."`
	Out        string   `placeholder:"DIR" help:"Result folder. Default: out/validate/ and the name of the configuration. Finished runs in it are not made again."`
	JSON       bool     `name:"json" help:"Print one JSON array, an object a run and metric, and nothing else."`
	Workers    int      `placeholder:"N" help:"Simulations at a time. Default: one a core. Live runs are made one by one, before."`
	Live       string   `enum:"gpu,reference" default:"gpu" help:"What runs live: gpu, or reference, which is fit for tiny models. Default: ${default}."`
	Weights    string   `placeholder:"DIR" help:"A folder of safetensors with its config.json. Default: drawn from the seed."`
	SplitEvery int64    `placeholder:"N" default:"16" help:"Every n-th live step is split into phases. Default: ${default}."`
	libraryFlag
	LiveOnly  bool     `help:"Make the live runs and nothing else; --reuse-live goes on from there, on a machine without GPU too. Several processes, one a GPU, may do so in one folder: each takes the next run that nobody makes."`
	Again     bool     `name:"rerun-disturbed" help:"Make live runs once more, after all others, that something on the machine disturbed, and keep the steadier of the two: whose steps of the same work agree better with each other, whatever the model says of them."`
	Kept      bool     `name:"reuse-live" help:"Take live runs that the result folder keeps, whatever profile, device and program made them; only what is missing runs live, and is left out where there is no library to do so."`
	Markdown  bool     `help:"Print the tables in Markdown, with the live figures."`
	Recompute string   `placeholder:"DIR" help:"Run nothing: compute the table of a result folder anew from its files."`
	Repeat    string   `placeholder:"DIR,DIR" help:"Run nothing: hold the live runs of the first folder against the same runs of the second, and say by how much live runs differ among themselves: what runs of one program differ by, no simulation predicts."`
	Ablate    []string `placeholder:"DIR[,PROFILE]" sep:"none" help:"Run nothing: price the steps of a result folder's live runs without each part of the cost model in turn, and print what it is worth. May be repeated, a card each; PROFILE is that of the card, by default what the runs name."`
}

// Help is what the command's help adds.
func (*validateCmd) Help() string {
	return `Every point of the experiment is run twice: live, where the GPU does the work and its
time is measured, and simulated with every head. Users' figures (TTFT, TBT, throughput, scheduling
delay, blocks loaded, hits) are compared run by run. In addition the cost model prices each batch
that the live run has carried out, so that step times are compared on identical batches.

The result folder keeps, compressed, the summary and requests of both, what each live step asked
of the device and the modelled time of its batch, validate.csv and validate.json with every
figure, live and simulated, and pictures. Live runs cost GPU time: a killed validation goes on
where it was, and after a new calibration --reuse-live compares the same live runs with it.

--ablate says what each part of the cost model is worth: by how much the mean error of step times
grows without it, on the batches of kept live runs. A part that does not pay on every card is one
too many.`
}

// Validate is called by the parser.
func (c *validateCmd) Validate() error {
	switch {
	case c.Recompute != "" && (c.Config != "" || c.Out != "" || len(c.Set) > 0 || c.LiveOnly ||
		c.Kept || c.Again):
		return errors.New("--recompute reads a result folder; leave out CONFIG and what goes with it")
	case len(c.Ablate) > 0 && (c.Config != "" || c.Recompute != "" || c.Out != "" || len(c.Set) > 0 ||
		c.LiveOnly || c.Kept || c.Again):
		return errors.New("--ablate reads result folders; leave out CONFIG and what goes with it")
	case c.Repeat != "" && (c.Config != "" || c.Recompute != "" || len(c.Ablate) > 0 || c.Out != "" ||
		len(c.Set) > 0 || c.LiveOnly || c.Kept || c.Again || c.Markdown || c.Workers != 0 ||
		c.Weights != ""):
		return errors.New("--repeat reads two result folders; leave out CONFIG and what goes with it")
	case c.Repeat != "" && (strings.Count(c.Repeat, ",") != 1 || strings.HasPrefix(c.Repeat, ",") ||
		strings.HasSuffix(c.Repeat, ",")):
		return fmt.Errorf("--repeat %s: expected two result folders, DIR,DIR", c.Repeat)
	case len(c.Ablate) == 0 && c.Recompute == "" && c.Config == "" && c.Repeat == "":
		return errors.New("expected CONFIG, --recompute DIR, --ablate DIR or --repeat DIR,DIR")
	case c.Again && c.Kept:
		return errors.New("--reuse-live takes live runs as they are; leave out --rerun-disturbed")
	case c.LiveOnly && (c.Markdown || c.JSON):
		return errors.New("--live-only makes no comparison; leave out --json and --markdown")
	case c.Markdown && c.JSON:
		return errors.New("--json and --markdown: choose one")
	case c.Workers < 0:
		return fmt.Errorf("--workers %d: must be at least 1, or 0 for one a core", c.Workers)
	}
	return nil
}

func (c *validateCmd) Run(ctx context.Context, app *App) error {
	if len(c.Ablate) > 0 {
		return c.ablate(app)
	}
	if c.Repeat != "" {
		return c.repeat(app)
	}
	out, report, err := c.Recompute, (*validate.Report)(nil), error(nil)
	if out != "" {
		report, err = validate.Recompute(out)
	} else {
		out, report, err = c.validate(ctx, app)
	}
	if err != nil || report == nil {
		return err
	}
	d := answers.Validation(report)
	pictures, err := figures.Draw(ctx, filepath.Join(out, "pictures"), d.Figures)
	if err != nil {
		return err
	}
	switch {
	case c.JSON:
		return printJSON(app, report.Comparisons())
	case c.Markdown:
		return show.Markdown(app.Stdout, d)
	}
	all := "sparseserve report " + inCell(out) + " --format text"
	if err := printAnswer(app.Stdout, d, all); err != nil {
		return err
	}
	listFiles(app.Stdout, out, report.Files)
	fmt.Fprintf(app.Stdout, "  %s: %s\nOther errors, and what was measured: %s\n",
		filepath.Join("pictures", "*.png"), count(len(pictures), "picture"), all)
	return nil
}

// ablate prints what each part of the cost model is worth on the cards of kept runs.
func (c *validateCmd) ablate(app *App) error {
	var cards []validate.AblationCard
	for _, card := range c.Ablate {
		dir, profile, _ := strings.Cut(card, ",")
		cards = append(cards, validate.AblationCard{Dir: dir, Profile: profile})
	}
	a, err := validate.Ablate(cards)
	switch {
	case err != nil:
		return err
	case c.JSON:
		return printJSON(app, a)
	case c.Markdown:
		return show.Markdown(app.Stdout, answers.Ablation(a))
	}
	return printWhole(app.Stdout, answers.Ablation(a))
}

// repeat compares the live runs of two folders.
func (c *validateCmd) repeat(app *App) error {
	dir, again, _ := strings.Cut(c.Repeat, ",")
	report, notes, err := validate.Repeat(dir, again)
	if err != nil {
		return err
	}
	printNotes(app.Stderr, notes)
	if c.JSON {
		return printJSON(app, report.Comparisons())
	}
	return printWhole(app.Stdout, answers.Repeated(report))
}

// validate makes the runs that are missing.
func (c *validateCmd) validate(ctx context.Context, app *App) (out string, report *validate.Report,
	err error) {
	// what is kept is said of an interrupt at any time, so that reading does not end with it
	sweep, err := config.LoadSweep(c.Config, c.Set, nil)
	if err != nil {
		return "", nil, err
	}
	if out = c.Out; out == "" {
		out = filepath.Join("out", "validate", sweep.Name)
	}
	flags := liveFlags{Live: liveMode(c.Live), Weights: c.Weights, SplitEvery: c.SplitEvery,
		libraryFlag: c.libraryFlag}
	machine, err := flags.machine()
	if err != nil {
		return "", nil, err
	}
	bar := newProgress(app.Stderr, "requests")
	v := validate.Validation{
		Dir: out, Sweep: sweep, Live: machine, LiveProgram: app.LiveVersion, Program: app.Version,
		Simulate: app.Run, Workers: c.Workers, Kept: c.Kept, LiveOnly: c.LiveOnly, Again: c.Again,
		Planned: bar.planned, Finished: bar.finished,
	}
	report, notes, err := v.Do(ctx)
	bar.close()
	printNotes(app.Stderr, notes)
	if cause := ctx.Err(); cause != nil && errors.Is(err, cause) {
		err = fmt.Errorf("%w%s", errInterrupted, strings.TrimPrefix(err.Error(), cause.Error()))
	}
	if err == nil && c.LiveOnly && !c.JSON {
		fmt.Fprintf(app.Stdout, "All live runs of %s are kept in %s%s; --reuse-live compares them.\n",
			sweep.Name, out, takenBy(v.Taken))
	}
	return out, report, err
}

// takenBy says that other processes are at runs, too.
func takenBy(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", but for what other processes are still making (they took %d)", n)
}
