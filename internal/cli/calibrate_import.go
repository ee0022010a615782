package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sparseserve/sparseserve/calibrate"
	"github.com/sparseserve/sparseserve/calibrate/aic"
	"github.com/sparseserve/sparseserve/internal/files"
)

// importTables makes a card and its kernels from a folder of measured tables.
func (c *calibrateCmd) importTables(ctx context.Context, app *App) error {
	if len(c.Import) != 3 || c.Import[0] != "import" || c.Import[1] != "aic" {
		return fmt.Errorf("calibrate %s: want nothing, or: import aic DIR", strings.Join(c.Import, " "))
	}
	for _, f := range []struct {
		flag string
		set  bool
	}{{"--quick", c.Quick}, {"--host", c.Host}, {"--pool", c.Pool != 0}, {"--fresh", c.Fresh},
		{"--visit", c.Visit}, {"--steady", c.Steady}, {"--drive", c.Drive != ""},
		{"--refit", c.Refit != ""}} {
		if f.set {
			return fmt.Errorf("%s is of a measurement: leave it out of calibrate import aic", f.flag)
		}
	}
	dir := filepath.Clean(c.Import[2])
	name := strings.ToLower(filepath.Base(dir))
	out := c.Out
	if out == defaultCalibration {
		out = filepath.Join(filepath.Dir(out), name+".toml")
	}
	kernels := strings.TrimSuffix(out, ".toml") + "-kernels.toml"
	for _, path := range []string{out, kernels} { // before it is made
		if err := files.CheckOutput(path); err != nil {
			return err
		}
	}
	made, err := aic.Import(ctx, dir, aic.Options{Card: c.Card, Name: name})
	if err != nil {
		return interrupted(ctx, err)
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
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
	if err := drawFits(ctx, plots, c.Format...); err != nil {
		return interrupted(ctx, err)
	}
	if err := printFits(app.Stdout, out, &made.Kernels.Provenance, made.Kernels.Fits); err != nil {
		return err
	}
	_, err = fmt.Fprintf(app.Stdout, "%s: a card; --set gpu=%[1]s; its kernels in %s, plots in %s\n",
		out, kernels, plots)
	return err
}
