package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sparseserve/sparseserve/calibrate"
	"github.com/sparseserve/sparseserve/calibrate/aic"
	"github.com/sparseserve/sparseserve/calibrate/drive"
	"github.com/sparseserve/sparseserve/experiments/validate"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/builtin"
	"github.com/sparseserve/sparseserve/internal/answers"
	"github.com/sparseserve/sparseserve/internal/files"
)

type calibrateCmd struct {
	Run    calibrateRun    `cmd:"" default:"withargs" help:"Measure this machine's GPU and write a hardware profile. The default."`
	Host   calibrateHost   `cmd:"" help:"Fit what the CPU does in a step of the live loop to kept live runs, and write an engine for system.engine. Needs no GPU."`
	Drive  calibrateDrive  `cmd:"" help:"Measure the SSD that a folder is on, and write a drive file for prefix_cache.drive. Linux; needs no GPU."`
	Import calibrateImport `cmd:"" help:"Make a card and its kernels of AIConfigurator's tables of measured kernels. Needs no GPU."`
	Refit  calibrateRefit  `cmd:"" help:"Fit a profile to samples that a calibration has kept. Needs no GPU."`
}

type calibrateRun struct {
	Out   string `default:"out/calibration.toml" placeholder:"FILE" help:"Profile to write; the samples (CSV) and plots go to the same folder. Default: ${default}."`
	Quick bool   `help:"Fewer sizes and samples: under a minute."`
	Pool  int64  `placeholder:"GIB" help:"Largest pool of host memory to pin. Default: 32, at most half of what is free."`
	Force bool   `help:"Measure again what an earlier run measured."`
}

// Run implements the command.
func (c *calibrateRun) Run(ctx context.Context, app *App) error {
	if err := prepare(c.Out); err != nil {
		return err
	}
	options := calibrate.Options{Out: c.Out, Plan: calibrate.Full, Fresh: c.Force, PoolGiB: c.Pool}
	if c.Quick {
		options.Plan = calibrate.Quick
	}
	done, err := onThisMachine(ctx, app, options)
	return printCalibration(ctx, app, c.Out, done, err)
}

type calibrateHost struct {
	Dir string `arg:"" name:"DIR" help:"Folder of validate run, with the calls of each step and steps that were split into phases."`
	Out string `default:"out/host.toml" placeholder:"FILE" help:"Engine to write. Default: ${default}."`
}

// Run implements the command.
func (c *calibrateHost) Run(_ context.Context, app *App) error {
	if err := prepare(c.Out); err != nil {
		return err
	}
	engine, err := validate.FitHost(c.Dir)
	if err != nil {
		return err
	}
	if err := engine.Write(c.Out, "this project's live loop, as in "+c.Dir); err != nil {
		return err
	}
	_, err = fmt.Fprintf(app.Stdout, "%s: an engine; --set system.engine=%[1]s\n", inCell(c.Out))
	return err
}

type calibrateRefit struct {
	Samples string `arg:"" name:"CSV" help:"Samples of a calibration, as it has written them."`
	Out     string `default:"out/calibration.toml" placeholder:"FILE" help:"Profile to write; plots go to the same folder. Default: ${default}."`
}

// Run implements the command.
func (c *calibrateRefit) Run(ctx context.Context, app *App) error {
	if err := prepare(c.Out); err != nil {
		return err
	}
	done, err := calibrate.Refit(c.Samples, c.Out)
	return printCalibration(ctx, app, c.Out, done, err)
}

// prepare makes the folder of a file that a command writes. It refuses names that commands would
// not read as TOML, and places that are taken.
func prepare(out string) error {
	if filepath.Ext(out) != ".toml" {
		return fmt.Errorf("--out %s: want a name that ends in .toml", out)
	}
	if err := files.CheckOutput(out); err != nil {
		return err
	}
	return os.MkdirAll(filepath.Dir(out), 0o755)
}

// onThisMachine measures on this machine's GPU.
func onThisMachine(ctx context.Context, app *App, options calibrate.Options) (
	done *calibrate.Calibration, err error) {
	options.Log = func(text string) { fmt.Fprintln(app.Stderr, text) }
	bar := newProgress(app.Stderr, "samples")
	defer bar.close()
	options.Progress = func(n, of int, what string) { bar.at(n, of, what) }
	machine, giveBack, err := calibrate.OpenMachine("", options)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, giveBack()) }()
	return calibrate.Run(ctx, machine, options, time.Now().Format(time.DateOnly))
}

// printCalibration prints and draws the fits. There is a profile even if a probe failed; the error
// names the missing part.
func printCalibration(ctx context.Context, app *App, out string, done *calibrate.Calibration,
	failed error) error {
	if errors.Is(failed, calibrate.ErrInterrupted) {
		return fmt.Errorf("%w: %w", errInterrupted, failed)
	}
	if done == nil {
		return failed
	}
	err := showFits(ctx, app, calibrate.PlotDir(out), &done.Profile.Provenance, done.Profile.Fits)
	if err != nil {
		return errors.Join(failed, err)
	}
	if lasted := done.Lasted(); lasted != "" {
		fmt.Fprintln(app.Stdout, lasted)
	}
	_, err = fmt.Fprintf(app.Stdout, "%s: %d cost models, %d flagged; samples in %s, plots in %s\n",
		inCell(out), len(done.Profile.Fits), calibrate.Flagged(done.Profile),
		inCell(calibrate.CSVPath(out)), inCell(calibrate.PlotDir(out)))
	return errors.Join(failed, err)
}

// showFits draws fits into their folder, and prints their quality.
func showFits(ctx context.Context, app *App, dir string, from *hw.Provenance, fits []hw.Fit) error {
	d := answers.Calibration(filepath.Base(dir), from, fits)
	var err error
	if d.Figures, err = answers.Fits(dir); err == nil {
		_, err = drawIn(ctx, dir, d.Figures)
	}
	return errors.Join(printWhole(app.Stdout, d), err)
}

// Sizes and durations of drive measurements: larger than the drive's read cache, and long enough to
// be steady.
const (
	driveBytes = 4 << 30
	driveEach  = 5 * time.Second
	quickBytes = 256 << 20
	quickEach  = 200 * time.Millisecond
)

type calibrateDrive struct {
	Folder string `arg:"" name:"DIR" help:"Folder on the SSD. Reads are measured by queue depth past the page cache, in two minutes and a file of 4 GiB that is removed at the end."`
	Out    string `default:"out/drive.toml" placeholder:"FILE" help:"Drive file to write. Default: ${default}."`
	Quick  bool   `help:"A smaller file and fewer seconds."`
}

// Run measures the SSD of a folder and writes its file.
func (c *calibrateDrive) Run(ctx context.Context, app *App) error {
	if err := prepare(c.Out); err != nil {
		return err
	}
	o := drive.Options{Folder: c.Folder, Bytes: driveBytes, Each: driveEach, Depths: drive.Depths(),
		Log: func(text string) { fmt.Fprintln(app.Stderr, text) }}
	if c.Quick {
		o.Bytes, o.Each = quickBytes, quickEach
	}
	found, err := drive.Measure(ctx, o)
	if err != nil {
		return err
	}
	d := found.Describe("measured", time.Now().Format(time.DateOnly))
	if err := builtin.Write(map[string]any{c.Out: d}); err != nil {
		return err
	}
	_, err = fmt.Fprintf(app.Stdout, "%s: reads of 1 MiB %.4g MB/s, of 4 KiB %.4g 1/s, writes "+
		"%.4g MB/s; --set prefix_cache.drive=%[1]s\n", c.Out, d.Read.Value, d.Reads.Value, d.Write.Value)
	return err
}

type calibrateImport struct {
	Tables string `arg:"" name:"DIR" help:"Folder of a card's tables, as of AIConfigurator's systems/data."`
	Card   string `placeholder:"CARD" complete:"cards" help:"The card of the tables, a name or a file. Default: one is made of the nominal figures in DIR.yaml."`
	Out    string `placeholder:"FILE" help:"Card to write; its kernels and plots go to the same folder. Default: out/DIR.toml."`
}

// Run makes a card and its kernels from a folder of measured tables.
func (c *calibrateImport) Run(ctx context.Context, app *App) error {
	dir := filepath.Clean(c.Tables)
	name := strings.ToLower(filepath.Base(dir))
	out := cmp.Or(c.Out, filepath.Join("out", name+".toml"))
	kernels := strings.TrimSuffix(out, ".toml") + "-kernels.toml"
	if err := errors.Join(prepare(out), prepare(kernels)); err != nil { // before they are made
		return err
	}
	made, err := aic.Import(ctx, dir, aic.Options{Card: c.Card, Name: name})
	if err != nil {
		return err
	}
	made.Card.Kernels.FA3 = filepath.Base(kernels)
	if c.Card == "" { // no other file has this card
		made.Kernels.MeasuredOn = filepath.Base(out)
	}
	if err := errors.Join(made.Kernels.Write(kernels), made.Card.Write(out)); err != nil {
		return err
	}
	plots := calibrate.PlotDir(out)
	if err := os.MkdirAll(plots, 0o755); err != nil {
		return err
	}
	if err := made.WriteFits(plots); err != nil {
		return err
	}
	if err := showFits(ctx, app, plots, &made.Kernels.Provenance, made.Kernels.Fits); err != nil {
		return err
	}
	_, err = fmt.Fprintf(app.Stdout, "%s: a card; --set gpu=%[1]s; its kernels in %s, plots in %s\n",
		out, kernels, plots)
	return err
}
