package cli

import (
	"cmp"
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
	if err := checkTOML(out); err != nil {
		return err
	}
	kernels := strings.TrimSuffix(out, ".toml") + "-kernels.toml"
	for _, path := range []string{out, kernels} { // before it is made
		if err := files.CheckOutput(path); err != nil {
			return err
		}
	}
	made, err := aic.Import(ctx, dir, aic.Options{Card: c.Card, Name: name})
	if err != nil {
		return err
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
	if err := drawFits(ctx, plots); err != nil {
		return err
	}
	if err := printFits(app.Stdout, out, &made.Kernels.Provenance, made.Kernels.Fits); err != nil {
		return err
	}
	_, err = fmt.Fprintf(app.Stdout, "%s: a card; --set gpu=%[1]s; its kernels in %s, plots in %s\n",
		out, kernels, plots)
	return err
}
