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

// claimModel is a model that claims are judged by. Without a folder its numbers are built in.
type claimModel struct {
	papers.Studies
	changed string // under which its numbers are kept
}

// models returns the models that the command names, and the document of their outcomes.
func (c *claimsCmd) models() (all []claimModel, show func([][]papers.Outcome) *doc.Doc, err error) {
	show = func(models [][]papers.Outcome) *doc.Doc { return answers.Claims(models[0]) }
	shorter := func(changed string, change *papers.Change) { // than runs of claims: only effects count
		all = append(all, claimModel{papers.Studies{Change: change,
			Dir: filepath.Join(c.Out, "sensitivity", change.String()),
			Sets: []string{"seed=[1, 2, 3]", "workload.requests=100", "simulation.groups=4",
				"goodput.start=0.2", "goodput.width=0.25", "goodput.coarse=true"}}, changed})
	}
	switch c.Numbers {
	case kept:
		all = make([]claimModel, 1)
	case search:
		changes, err := papers.KeptChanges()
		for _, changed := range append([]string{""}, changes...) {
			all = append(all, claimModel{changed: changed})
		}
		return all, func(models [][]papers.Outcome) *doc.Doc {
			return answers.SearchedClaims(changes, models)
		}, err
	case swapped:
		shorter(papers.Shorter, nil)
		shorter(papers.Exchanged, papers.Swapped())
		show = func(models [][]papers.Outcome) *doc.Doc {
			return answers.SwappedClaims(models[0], models[1])
		}
	case sensitivity:
		shorter("", nil)
		tuned := papers.TunedParameters()
		for _, f := range tuned {
			shorter("", &papers.Change{Tuned: f, Factor: 0.5})
			shorter("", &papers.Change{Tuned: f, Factor: 2})
		}
		show = func(models [][]papers.Outcome) *doc.Doc { return answers.SensitiveClaims(tuned, models) }
	default:
		m := claimModel{papers.Studies{Dir: c.results(), Sets: c.Set}, strings.Join(c.Set, " ")}
		if len(c.Set) > 0 {
			m.Dir = filepath.Join(c.Out, "changed")
		}
		if all = []claimModel{m}; c.Numbers == null {
			show = func(models [][]papers.Outcome) *doc.Doc { return answers.NullClaims(models[0]) }
		}
	}
	return all, show, nil
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
	models, show, err := c.models()
	if err != nil {
		return err
	}
	experiments, judge := papers.ClaimExperiments, papers.Judge
	switch {
	case c.Numbers == null:
		experiments, judge = papers.NullExperiments, papers.Null
	case c.Numbers == swapped || c.Numbers == sensitivity:
		judge = papers.Compare
		if len(c.Names) == 0 { // PSA's Fig. 6, for example, prescribes the number of requests per set
			claims = slices.DeleteFunc(claims, papers.Claim.Apart)
		}
	}
	outcomes := make([][]papers.Outcome, len(models))
	for i, m := range models {
		names := experiments(claims)
		if m.Dir != "" && len(names) > 0 {
			err = c.run(ctx, app, m.Studies, names...)
		}
		switch {
		case err != nil:
		case m.Dir == "":
			outcomes[i], err = papers.Kept(claims, m.changed)
		default:
			outcomes[i], err = judge(claims, m.Dir)
		}
		if err == nil && c.Keep != "" {
			err = papers.Keep(c.Keep, m.changed, outcomes[i])
		}
		if err != nil {
			return err
		}
		if c.Numbers != search && c.Numbers != sensitivity {
			papers.SortByClass(outcomes[i])
		}
	}
	return c.print(app, outcomes[0], show(outcomes))
}
