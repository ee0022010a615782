package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"sparseserve/experiments"
)

type claimsCmd struct {
	Paper       string `placeholder:"NAME" help:"Claims of one paper: sparseserve, psa or minference. Default: all."`
	JSON        bool   `name:"json" help:"Print one JSON array, an object a value, and nothing else."`
	Out         string `default:"${paperFolder}" placeholder:"DIR" help:"Where results are kept, as of figures --paper. Default: ${default}."`
	Readme      string `placeholder:"FILE" help:"Write the table between the lines <!-- claims --> and <!-- /claims --> of a Markdown file."`
	Sensitivity bool   `help:"Measure again with outputs half and twice as long, and print what moves. Takes three times as long."`
	Workers     int    `placeholder:"N" help:"Runs at a time. Default: one a core."`
}

// Validate is called by the parser.
func (c *claimsCmd) Validate() error {
	switch {
	case c.Workers < 0:
		return fmt.Errorf("--workers %d: must be at least 1", c.Workers)
	case c.JSON && c.Sensitivity:
		return errors.New("--sensitivity prints a table; leave out --json")
	}
	return nil
}

func (c *claimsCmd) Run(ctx context.Context, app *App) error {
	claims, err := experiments.Claims(c.Paper)
	if err != nil {
		return err
	}
	verdicts, err := c.judge(ctx, app, claims, "results", 1)
	if err != nil {
		return err
	}
	if c.Sensitivity {
		half, err := c.judge(ctx, app, claims, "results-half", 0.5)
		if err != nil {
			return err
		}
		double, err := c.judge(ctx, app, claims, "results-double", 2)
		if err != nil {
			return err
		}
		printSensitivity(app.Stdout, verdicts, half, double)
	} else if c.JSON {
		e := json.NewEncoder(app.Stdout)
		e.SetIndent("", "  ")
		err = e.Encode(verdicts)
	} else {
		printClaims(app.Stdout, verdicts)
	}
	if err != nil || c.Readme == "" {
		return err
	}
	return writeBlock(c.Readme, "claims", claimsMarkdown(verdicts))
}

// judge runs what the claims are measured on and measures them.
func (c *claimsCmd) judge(ctx context.Context, app *App, claims []experiments.Claim, folder string, scale float64) ([]experiments.Verdict, error) {
	dir := filepath.Join(c.Out, folder)
	if names := experiments.ClaimExperiments(claims); len(names) > 0 {
		if err := runLab(ctx, app, dir, c.Workers, scale, names...); err != nil {
			return nil, err
		}
	}
	return experiments.Judge(claims, dir)
}
