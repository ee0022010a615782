package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/sparseserve/sparseserve/experiments/papers"
)

type claimsCmd struct {
	Paper       string   `placeholder:"NAME" help:"Claims of one paper: sparseserve, psa or minference. Default: all."`
	Only        []string `placeholder:"ID" help:"Claims to measure, as in ss-fig16a. May be repeated."`
	JSON        bool     `name:"json" help:"Print one JSON array, an object a value, and nothing else."`
	Out         string   `default:"${paperFolder}" placeholder:"DIR" help:"Where results are kept, as of figures --paper. Default: ${default}."`
	Readme      string   `placeholder:"FILE" help:"Write the table between the lines <!-- claims --> and <!-- /claims --> of a Markdown file, that of another paper between <!-- claims NAME --> and its end, and what moves between <!-- sensitivity --> and <!-- /sensitivity -->."`
	Sensitivity bool     `help:"Print what moves with each tuned parameter at half and at double, on three seeds of 100 requests and with goodput to a quarter, in the place of the table."`
	Workers     int      `placeholder:"N" help:"Runs at a time. Default, and 0: one a core."`
}

// Validate is called by the parser.
func (c *claimsCmd) Validate() error {
	switch {
	case c.Workers < 0:
		return fmt.Errorf("--workers %d: must be at least 1, or 0 for one a core", c.Workers)
	case c.JSON && c.Sensitivity:
		return errors.New("--sensitivity prints a table; leave out --json")
	}
	return nil
}

func (c *claimsCmd) Run(ctx context.Context, app *App) error {
	claims, err := papers.Claims(c.Paper, c.Only...)
	if err != nil {
		return err
	}
	if c.Readme != "" { // before anything runs
		if _, _, err := cutBlock(c.Readme, c.block()); err != nil {
			return err
		}
	}
	if c.Sensitivity {
		return c.sensitivity(ctx, app, claims)
	}
	studies := papers.Studies{Dir: filepath.Join(c.Out, "results")}
	if err := c.serve(ctx, app, claims, studies); err != nil {
		return err
	}
	outcomes, err := papers.Judge(claims, studies.Dir)
	if err != nil {
		return err
	}
	if c.JSON {
		err = printJSON(app, outcomes)
	} else {
		printClaims(app.Stdout, outcomes)
	}
	if err != nil || c.Readme == "" {
		return err
	}
	return writeBlock(c.Readme, c.block(), claimsMarkdown(outcomes))
}

// block names the lines of the README that the command writes between.
func (c *claimsCmd) block() string {
	switch {
	case c.Sensitivity:
		return "sensitivity"
	case c.Paper != "" && c.Paper != "sparseserve":
		return "claims " + c.Paper
	}
	return "claims"
}

// shorter makes less of the experiments than a claim has: what moves is seen on
// the same arrivals and heads before and after. A goodput is found to a quarter.
func shorter() []string {
	return []string{"seeds=[1, 2, 3]", "workload.requests=100", "system.sample_groups=4",
		"goodput.start=0.2", "goodput.width=0.25", "goodput.coarse=true"}
}

// sensitivity measures the claims with each tuned parameter as it is, at half
// and at double. Claims on experiments that take long are left to --only.
func (c *claimsCmd) sensitivity(ctx context.Context, app *App, claims []papers.Claim) error {
	if len(c.Only) == 0 {
		claims = slices.DeleteFunc(claims, papers.Claim.Apart)
	}
	measure := func(name string, change *papers.Change) ([]papers.Outcome, error) {
		studies := papers.Studies{Dir: filepath.Join(c.Out, "sensitivity", name), Sets: shorter(),
			Change: change}
		if err := c.serve(ctx, app, claims, studies); err != nil {
			return nil, err
		}
		return papers.Compare(claims, studies.Dir)
	}
	base, err := measure("base", nil)
	if err != nil {
		return err
	}
	var moved []moves
	for _, f := range papers.TunedParameters() {
		half, err := measure(f.Name+"-half", &papers.Change{Tuned: f, Factor: 0.5})
		if err != nil {
			return err
		}
		double, err := measure(f.Name+"-double", &papers.Change{Tuned: f, Factor: 2})
		if err != nil {
			return err
		}
		moved = append(moved, moves{f, half, double})
	}
	printSensitivity(app.Stdout, base, moved)
	if c.Readme == "" {
		return nil
	}
	return writeBlock(c.Readme, c.block(), sensitivityMarkdown(base, moved))
}

// serve runs what the claims are measured on.
func (c *claimsCmd) serve(ctx context.Context, app *App, claims []papers.Claim,
	studies papers.Studies) error {
	studies.Workers = c.Workers
	names := papers.ClaimExperiments(claims)
	if len(names) == 0 {
		return nil
	}
	return runStudies(ctx, app, c.Out, studies, names...)
}
