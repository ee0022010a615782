package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/sparseserve/sparseserve/calibrate"
	"github.com/sparseserve/sparseserve/figures"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/internal/answers"
)

// defaultCalibration is where a profile is written.
const defaultCalibration = "out/calibration.toml"

type calibrateCmd struct {
	Out    string `default:"${calibration}" placeholder:"FILE" help:"Profile to write; the samples (CSV) and plots go to the same folder. Default: ${default}."`
	Quick  bool   `help:"Fewer sizes and samples: under a minute."`
	Host   bool   `help:"Measure only what the CPU does in a step of the live loop, and write an engine (default: out/host.toml) for system.engine. For a built-in card: hosts differ more than cards do."`
	Pool   int64  `placeholder:"GIB" help:"Largest pool of host memory to pin. Default: 32, at most half of what is free."`
	Fresh  bool   `help:"Measure anew what an earlier run has measured."`
	Visit  bool   `help:"With --host: measure each point once, and add that to what earlier visits have measured. One before and one after other runs say what the host was over them."`
	Steady bool   `help:"Stop where the first copies show that others disturb the host's CPU. Default: say so and go on."`
	libraryFlag
	Format []string `enum:"png,svg,pdf" default:"png" placeholder:"FORMAT" help:"Formats of the plots: png, svg and pdf. Default: ${default}."`
	Drive  string   `placeholder:"DIR" help:"Measure the SSD that this folder is on and nothing else: reads by queue depth past the page cache, in two minutes and a file of 4 GiB, removed at the end. Writes a drive file for system.prefix_drive to --out, by default out/drive.toml. Linux; needs no GPU."`
	Import []string `arg:"" optional:"" name:"import aic DIR" help:"Make a card and its kernels from AIConfigurator's tables of measured kernels in this folder, instead of measuring; needs no GPU. Writes to --out, by default out/DIR.toml."`
	Card   string   `placeholder:"CARD" complete:"cards" help:"With import: the card of the tables, a name or a file. Default: one is made of the nominal figures in DIR.yaml."`
	Refit  string   `placeholder:"CSV" help:"Fit these samples instead of measuring; needs no GPU."`
}

// printFits prints the quality of fits.
func printFits(w io.Writer, out string, from *hw.Provenance, fits []hw.Fit) error {
	return printWhole(w, answers.Calibration(filepath.Base(calibrate.PlotDir(out)), from, fits))
}

// drawFits draws what a folder has of fits into it.
func drawFits(ctx context.Context, dir string, formats ...string) error {
	fits, err := answers.Fits(dir)
	if err == nil {
		_, err = figures.Draw(ctx, dir, fits, formats...)
	}
	return err
}

// Run implements the command.
func (c *calibrateCmd) Run(ctx context.Context, app *App) error {
	if c.Host && (c.Drive != "" || c.Quick) {
		return errors.New("--host measures one thing at its full sizes: leave --quick and --drive out")
	}
	if c.Visit && (!c.Host || c.Refit != "") {
		return errors.New("--visit adds to what --host has measured: give --host too, and no --refit")
	}
	if filepath.Ext(c.Out) != ".toml" {
		return fmt.Errorf("--out %s: want a name that ends in .toml", c.Out)
	}
	if len(c.Import) > 0 {
		return c.importTables(ctx, app)
	}
	if c.Card != "" {
		return errors.New("--card is of calibrate import aic DIR")
	}
	if c.Drive != "" {
		return c.measureDrive(ctx, app)
	}
	if c.Host && c.Out == defaultCalibration {
		c.Out = filepath.Join(filepath.Dir(c.Out), "host.toml")
	}
	var done *calibrate.Calibration
	var err error
	if c.Refit != "" {
		done, err = calibrate.Refit(c.Refit, c.Out)
	} else {
		done, err = c.measure(ctx, app)
	}
	if errors.Is(err, calibrate.ErrInterrupted) || ctx.Err() != nil &&
		errors.Is(err, calibrate.ErrVisitLost) {
		return fmt.Errorf("%w: %w", errInterrupted, err)
	}
	if done == nil {
		return err
	}
	// A profile is there even where a probe failed: what it lacks is the error.
	failed := err
	if err := printFits(app.Stdout, c.Out, &done.Profile.Provenance, done.Profile.Fits); err != nil {
		return errors.Join(failed, err)
	}
	if lasted := done.Lasted(); lasted != "" {
		fmt.Fprintln(app.Stdout, lasted)
	}
	if err := drawFits(ctx, calibrate.PlotDir(c.Out), c.Format...); err != nil {
		return errors.Join(failed, err)
	}
	if done.HostOnly() {
		_, err = fmt.Fprintf(app.Stdout, "%s: an engine; --set system.engine=%[1]s; samples in %s\n",
			inCell(c.Out), inCell(calibrate.CSVPath(c.Out)))
		return errors.Join(failed, err)
	}
	_, err = fmt.Fprintf(app.Stdout, "%s: %d cost models, %d flagged; samples in %s, plots in %s\n",
		inCell(c.Out), len(done.Profile.Fits), calibrate.Flagged(done.Profile),
		inCell(calibrate.CSVPath(c.Out)), inCell(calibrate.PlotDir(c.Out)))
	return errors.Join(failed, err)
}

func (c *calibrateCmd) measure(ctx context.Context, app *App) (done *calibrate.Calibration,
	err error) {
	options := calibrate.Options{Out: c.Out, Plan: calibrate.Full, Fresh: c.Fresh, Visit: c.Visit,
		PoolGiB: c.Pool, Steady: c.Steady,
		Log: func(text string) { fmt.Fprintln(app.Stderr, text) }, Progress: func(int, int, string) {}}
	switch {
	case c.Quick:
		options.Plan = calibrate.Quick
	case c.Host:
		options.Plan = calibrate.Host
	}
	machine, giveBack, err := calibrate.OpenMachine(c.Library, options)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, giveBack()) }()
	if isTerminal(app.Stderr) {
		bar := progressbar.NewOptions(-1, progressbar.OptionSetWriter(terminal(app.Stderr)),
			progressbar.OptionShowCount(), progressbar.OptionFullWidth(),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
		options.Progress = func(n, of int, what string) {
			bar.ChangeMax(of)
			bar.Describe(what)
			bar.Set(n)
		}
	}
	return calibrate.Run(ctx, machine, options, time.Now().Format(time.DateOnly))
}
