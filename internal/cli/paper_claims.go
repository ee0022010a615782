package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/papers"
	"github.com/sparseserve/sparseserve/internal/answers"
	"github.com/sparseserve/sparseserve/internal/doc"
)

// claimNumbers selects the numbers that claims are compared with.
type claimNumbers string

const (
	measured    claimNumbers = "measured"
	kept        claimNumbers = "kept"
	null        claimNumbers = "null"
	swapped     claimNumbers = "swapped"
	sensitivity claimNumbers = "sensitivity"
	search      claimNumbers = "search"
)

type claimsCmd struct {
	Names   []string     `arg:"" optional:"" name:"NAME" complete:"claims" help:"Papers (sparseserve, psa, minference) or claims, as in ss-fig16a. Default: all."`
	Numbers claimNumbers `enum:"measured,kept,null,swapped,sensitivity,search" default:"measured" placeholder:"KIND" help:"Numbers to judge by. measured: make the runs. kept: numbers built into the program; nothing runs. null: a model in which no mechanism has an effect. swapped: the tuned output lengths of the two models exchanged, beside ours; three seeds of 100 requests, goodput within 25 %. sensitivity: each tuned parameter halved and doubled, with such runs. search: built-in numbers of each changed reading and load, beside ours. Default: ${default}."`
	settings
	printFlags
	Keep string `placeholder:"FILE" help:"Write the numbers into a CSV file, as in experiments/papers/claims_kept.csv, in the place of those it has of the same change."`
	paperFlags
}

// check refuses flags that exclude each other.
func (c *claimsCmd) check() error {
	table := c.Numbers == swapped || c.Numbers == sensitivity || c.Numbers == search
	switch {
	case len(c.Set) > 0 && c.Numbers != measured:
		return fmt.Errorf("--set changes runs; leave out --numbers %s", c.Numbers)
	case c.Keep != "" && c.Numbers != measured && c.Numbers != swapped:
		return fmt.Errorf("--keep keeps numbers of runs; leave out --numbers %s", c.Numbers)
	case c.JSON && table:
		return fmt.Errorf("--numbers %s prints a table; leave out --json", c.Numbers)
	}
	return nil
}

// Run implements the command.
func (c *claimsCmd) Run(ctx context.Context, app *App) error {
	if err := c.check(); err != nil {
		return err
	}
	claims, err := papers.Claims(c.Names...)
	if err != nil {
		return err
	}
	var d *doc.Doc
	var outcomes []papers.Outcome
	switch c.Numbers {
	case search:
		d, err = searched(claims)
	case swapped, sensitivity:
		d, err = c.changed(ctx, app, c.shorterClaims(claims))
	default:
		d, outcomes, err = c.judge(ctx, app, claims)
	}
	if err != nil {
		return err
	}
	return c.print(app, outcomes, d)
}

// searched returns the claims under each stored change of an interpretation or a load, beside our
// numbers.
func searched(claims []papers.Claim) (*doc.Doc, error) {
	changes, err := papers.KeptChanges()
	if err != nil {
		return nil, err
	}
	models := make([][]papers.Outcome, 1+len(changes))
	for i, change := range append([]string{""}, changes...) {
		if models[i], err = papers.Kept(claims, change); err != nil {
			return nil, err
		}
	}
	return answers.SearchedClaims(changes, models), nil
}

// judge compares the claims with one model.
func (c *claimsCmd) judge(ctx context.Context, app *App, claims []papers.Claim) (d *doc.Doc,
	outcomes []papers.Outcome, err error) {
	studies := papers.Studies{Dir: c.results(), Sets: c.Set}
	if len(c.Set) > 0 {
		studies.Dir = filepath.Join(c.Out, "changed")
	}
	show := answers.Claims
	switch c.Numbers {
	case kept:
		outcomes, err = papers.Kept(claims, "")
	case null:
		show = answers.NullClaims
		outcomes, err = c.measure(ctx, app, claims, studies, papers.NullExperiments, papers.Null)
	default:
		outcomes, err = c.measure(ctx, app, claims, studies, papers.ClaimExperiments, papers.Judge)
	}
	if err != nil {
		return nil, nil, err
	}
	papers.SortByClass(outcomes)
	if c.Keep != "" {
		err = papers.Keep(c.Keep, strings.Join(c.Set, " "), outcomes)
	}
	return show(outcomes), outcomes, err
}

// measure makes the runs of claims and judges the claims by them.
func (c *claimsCmd) measure(ctx context.Context, app *App, claims []papers.Claim,
	studies papers.Studies, experiments func([]papers.Claim) []string,
	judge func([]papers.Claim, string) ([]papers.Outcome, error)) ([]papers.Outcome, error) {
	if names := experiments(claims); len(names) > 0 {
		if err := c.run(ctx, app, studies, names...); err != nil {
			return nil, err
		}
	}
	return judge(claims, studies.Dir)
}

// shorter returns settings for shorter experiments than a claim uses: effects of a change are
// measured on the same arrivals and heads. A goodput is searched within a quarter.
func shorter() []string {
	return []string{"seed=[1, 2, 3]", "workload.requests=100", "simulation.groups=4",
		"goodput.start=0.2", "goodput.width=0.25", "goodput.coarse=true"}
}

// shorterClaims returns the claims that shorter runs can measure. Claims apart are included only if
// named, for example PSA's Fig. 6, which prescribes the number of requests per set.
func (c *claimsCmd) shorterClaims(claims []papers.Claim) []papers.Claim {
	if len(c.Names) > 0 {
		return claims
	}
	return slices.DeleteFunc(claims, papers.Claim.Apart)
}

// changed measures claims on shorter runs: as they are, and with the tuned parameter of the models
// swapped, or with each tuned parameter at half and at double its value.
func (c *claimsCmd) changed(ctx context.Context, app *App, claims []papers.Claim) (*doc.Doc,
	error) {
	changes, tuned := []*papers.Change{nil}, papers.TunedParameters()
	if c.Numbers == swapped {
		changes, tuned = append(changes, papers.Swapped()), nil
	}
	for _, f := range tuned {
		changes = append(changes, &papers.Change{Tuned: f, Factor: 0.5},
			&papers.Change{Tuned: f, Factor: 2})
	}
	models := make([][]papers.Outcome, len(changes))
	for i, change := range changes {
		studies := papers.Studies{Dir: filepath.Join(c.Out, "sensitivity", change.String()),
			Sets: shorter(), Change: change}
		var err error
		models[i], err = c.measure(ctx, app, claims, studies, papers.ClaimExperiments, papers.Compare)
		if err != nil {
			return nil, err
		}
	}
	if c.Numbers == sensitivity {
		return answers.SensitiveClaims(tuned, models), nil
	}
	for i, changed := range []string{papers.Shorter, papers.Exchanged} {
		if c.Keep != "" {
			if err := papers.Keep(c.Keep, changed, models[i]); err != nil {
				return nil, err
			}
		}
		papers.SortByClass(models[i])
	}
	return answers.SwappedClaims(models[0], models[1]), nil
}
