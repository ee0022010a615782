package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/papers"
	"github.com/sparseserve/sparseserve/internal/answers"
	"github.com/sparseserve/sparseserve/internal/doc"
)

type claimsCmd struct {
	Paper       string   `placeholder:"NAME" help:"Claims of one paper: sparseserve, psa or minference. Default: all."`
	Only        []string `placeholder:"ID" help:"Claims to measure, as in ss-fig16a. May be repeated."`
	Set         []string `sep:"none" placeholder:"KEY=VALUE" help:"Change a key of every run that serves requests, as in workload.output_scale=3. May be repeated."`
	BuiltIn     bool     `help:"Judge the numbers that the program comes with. Nothing runs."`
	Null        bool     `help:"Judge a model in which no mechanism has an effect: every ratio is 1, every gain 0."`
	Swapped     bool     `help:"Judge a model with the tuned output lengths of its two models exchanged, beside ours, both on three seeds of 100 requests and with goodput to a quarter."`
	Sensitivity bool     `help:"Print what moves with each tuned parameter at half and at double, on runs as those of --swapped."`
	Search      bool     `help:"Print the numbers that the program comes with of each changed reading and load, beside ours. Nothing runs; --set with --keep makes them."`
	JSON        bool     `name:"json" help:"Print one JSON array, an object a value, and nothing else."`
	Out         string   `default:"${paperFolder}" placeholder:"DIR" help:"Where results are kept, as of figures --paper. Default: ${default}."`
	Keep        string   `placeholder:"FILE" help:"Write the numbers into a CSV file, as in experiments/papers/claims_kept.csv, in the place of those it has of the same change."`
	Readme      string   `placeholder:"FILE" help:"Write the result between the lines <!-- claims --> and <!-- /claims --> of a Markdown file; claims NAME for another paper; null, swapped, search or sensitivity for these."`
	Workers     int      `placeholder:"N" help:"Runs at a time. Default, and 0: one a core."`
}

// Validate is called by the parser.
func (c *claimsCmd) Validate() error {
	var models []string // that are judged in the place of ours
	for _, m := range []struct {
		flag string
		set  bool
	}{{"--built-in", c.BuiltIn}, {"--null", c.Null}, {"--swapped", c.Swapped},
		{"--sensitivity", c.Sensitivity}, {"--search", c.Search},
		{"--set", len(c.Set) > 0}} {
		if m.set {
			models = append(models, m.flag)
		}
	}
	switch {
	case c.Workers < 0:
		return fmt.Errorf("--workers %d: must be at least 1, or 0 for one a core", c.Workers)
	case len(models) > 1:
		return fmt.Errorf("%s: use one of them", strings.Join(models, " and "))
	case c.Keep != "" && (c.BuiltIn || c.Null || c.Sensitivity || c.Search):
		return fmt.Errorf("--keep keeps numbers from runs of one model; leave out %s", models[0])
	case c.JSON && (c.Sensitivity || c.Swapped || c.Search):
		return fmt.Errorf("%s prints a table; leave out --json", models[0])
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
	switch {
	case c.Search:
		return c.search(app, claims)
	case c.Sensitivity:
		return c.sensitivity(ctx, app, claims)
	case c.Swapped:
		return c.swapped(ctx, app, claims)
	}
	outcomes, err := c.judge(ctx, app, claims)
	if err != nil {
		return err
	}
	papers.SortByClass(outcomes)
	if c.Keep != "" {
		if err := papers.Keep(c.Keep, strings.Join(c.Set, " "), outcomes); err != nil {
			return err
		}
	}
	d := answers.Claims(outcomes)
	if c.Null {
		d = answers.NullClaims(outcomes)
	}
	if c.JSON {
		return errors.Join(printJSON(app, outcomes), c.write(d))
	}
	return c.print(app, d)
}

// print prints an answer, and writes it between the lines of a page.
func (c *claimsCmd) print(app *App, d *doc.Doc) error {
	return errors.Join(printWhole(app.Stdout, d), c.write(d))
}

// write writes an answer between the lines of a page.
func (c *claimsCmd) write(d *doc.Doc) error {
	if c.Readme == "" {
		return nil
	}
	text, err := onPage(d)
	if err != nil {
		return err
	}
	return writeBlock(c.Readme, c.block(), text)
}

// search prints the claims under each kept change of a reading or a load, beside ours.
func (c *claimsCmd) search(app *App, claims []papers.Claim) error {
	changes, err := papers.KeptChanges()
	if err != nil {
		return err
	}
	models := make([][]papers.Outcome, 1+len(changes))
	for i, change := range append([]string{""}, changes...) {
		if models[i], err = papers.Kept(claims, change); err != nil {
			return err
		}
	}
	return c.print(app, answers.SearchedClaims(changes, models))
}

// judge measures the claims by the model that the flags name.
func (c *claimsCmd) judge(ctx context.Context, app *App, claims []papers.Claim) ([]papers.Outcome,
	error) {
	studies := papers.Studies{Dir: filepath.Join(c.Out, "results"), Sets: c.Set}
	names, judge := papers.ClaimExperiments(claims), papers.Judge
	switch {
	case c.BuiltIn:
		return papers.Kept(claims, "")
	case c.Null:
		names, judge = papers.NullExperiments(claims), papers.Null
	case len(c.Set) > 0:
		studies.Dir = filepath.Join(c.Out, "changed")
	}
	if err := c.serve(ctx, app, names, studies); err != nil {
		return nil, err
	}
	return judge(claims, studies.Dir)
}

// block names the lines of the README that the command writes between.
func (c *claimsCmd) block() string {
	switch {
	case c.Search:
		return "search"
	case c.Sensitivity:
		return "sensitivity"
	case c.Null:
		return "null"
	case c.Swapped:
		return "swapped"
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

// shorterClaims are those that shorter runs can measure: PSA's Fig. 6 says how many requests each
// set needs, so it is left to --only.
func (c *claimsCmd) shorterClaims(claims []papers.Claim) []papers.Claim {
	if len(c.Only) > 0 {
		return claims
	}
	return slices.DeleteFunc(claims, papers.Claim.Apart)
}

// shortly measures claims on shorter runs, with a change.
func (c *claimsCmd) shortly(ctx context.Context, app *App, claims []papers.Claim, name string,
	change *papers.Change) ([]papers.Outcome, error) {
	studies := papers.Studies{Dir: filepath.Join(c.Out, "sensitivity", name), Sets: shorter(),
		Change: change}
	if err := c.serve(ctx, app, papers.ClaimExperiments(claims), studies); err != nil {
		return nil, err
	}
	return papers.Compare(claims, studies.Dir)
}

// swapped measures the claims as they are and with models' parameters exchanged.
func (c *claimsCmd) swapped(ctx context.Context, app *App, claims []papers.Claim) error {
	claims = c.shorterClaims(claims)
	base, err := c.shortly(ctx, app, claims, "base", nil)
	if err != nil {
		return err
	}
	swapped, err := c.shortly(ctx, app, claims, "swapped", papers.Swapped())
	if err != nil {
		return err
	}
	if c.Keep != "" {
		if err := papers.Keep(c.Keep, papers.Shorter, base); err != nil {
			return err
		}
		if err := papers.Keep(c.Keep, papers.Exchanged, swapped); err != nil {
			return err
		}
	}
	papers.SortByClass(base)
	papers.SortByClass(swapped)
	return c.print(app, answers.SwappedClaims(base, swapped))
}

// sensitivity measures the claims with each tuned parameter as it is, at half
// and at double.
func (c *claimsCmd) sensitivity(ctx context.Context, app *App, claims []papers.Claim) error {
	claims = c.shorterClaims(claims)
	base, err := c.shortly(ctx, app, claims, "base", nil)
	if err != nil {
		return err
	}
	var moved []answers.Moves
	for _, f := range papers.TunedParameters() {
		half, err := c.shortly(ctx, app, claims, f.Name+"-half", &papers.Change{Tuned: f, Factor: 0.5})
		if err != nil {
			return err
		}
		double, err := c.shortly(ctx, app, claims, f.Name+"-double", &papers.Change{Tuned: f, Factor: 2})
		if err != nil {
			return err
		}
		moved = append(moved, answers.Moves{Tuned: f, Half: half, Double: double})
	}
	return c.print(app, answers.SensitiveClaims(base, moved))
}

// serve runs experiments.
func (c *claimsCmd) serve(ctx context.Context, app *App, names []string,
	studies papers.Studies) error {
	studies.Workers = c.Workers
	if len(names) == 0 {
		return nil
	}
	return runStudies(ctx, app, c.Out, studies, names...)
}
