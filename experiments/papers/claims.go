package papers

import (
	"fmt"
	"slices"
	"strings"

	_ "embed"

	"github.com/BurntSushi/toml"

	"github.com/sparseserve/sparseserve/experiments/config"
)

//go:embed claims.toml
var claimsTOML string

//go:embed claims_notes.toml
var claimNotesTOML string

// Claim is what a paper says, as one or more numbers.
type Claim struct {
	ID     string    `toml:"id"`
	Paper  string    `toml:"paper"`
	Where  string    `toml:"where"`
	Text   string    `toml:"text"`
	Kind   string    `toml:"kind"` // ratio | share | bandwidth | points | speedup | seconds
	Value  float64   `toml:"value"`
	Values []float64 `toml:"values"`
	// Class is what each number is evidence of; empty: all are independent.
	Class []Class `toml:"class"`
}

// Class is what it says about the model that a number agrees with the paper's.
type Class string

const (
	Independent  Class = "independent"  // nothing was set by it
	Anchor       Class = "anchor"       // a parameter was set by it or by the same figure
	Construction Class = "construction" // it holds for any value of the parameters
	ChosenAfter  Class = "chosen-after" // it had failed before a parameter was chosen
	Product      Class = "product"      // of other numbers that are claims themselves
)

// Classes lists them, independent evidence first.
func Classes() []Class {
	return []Class{Independent, Anchor, Construction, ChosenAfter, Product}
}

// class returns the class of a number.
func (c *Claim) class(i int) Class {
	if len(c.Class) == 0 {
		return Independent
	}
	return c.Class[i]
}

// Claims lists the claims of a paper, or of all papers, and of those the ones
// that are named, or all. It panics when the built-in table is broken.
func Claims(paper string, ids ...string) ([]Claim, error) {
	var table struct {
		Claim []Claim `toml:"claim"`
	}
	if _, err := toml.Decode(claimsTOML, &table); err != nil {
		panic(fmt.Sprintf("claims.toml: %v", err))
	}
	var papers, known []string
	var some []Claim
	for _, c := range table.Claim {
		if !slices.Contains(papers, c.Paper) {
			papers = append(papers, c.Paper)
		}
		if paper != "" && c.Paper != paper {
			continue
		}
		known = append(known, c.ID)
		if len(ids) == 0 || slices.Contains(ids, c.ID) {
			some = append(some, c)
		}
	}
	if known == nil {
		return nil, fmt.Errorf("no claims of a paper %q; there are %v%s", paper, papers,
			config.DidYouMean(paper, papers))
	}
	for _, id := range ids {
		if !slices.Contains(known, id) {
			return nil, fmt.Errorf("no claim %q%s", id, config.DidYouMean(id, known))
		}
	}
	return some, nil
}

// numbers are the claim's values, one or several.
func (c *Claim) numbers() []float64 {
	if len(c.Values) > 0 {
		return c.Values
	}
	return []float64{c.Value}
}

// text says what number i is about. A text that ends in a list of as many things
// as there are numbers names that of the number.
func (c *Claim) text(i int) string {
	about, list, _ := strings.Cut(c.Text, ": ")
	if parts := strings.Split(list, ", "); len(parts) > 1 && len(parts) == len(c.Values) {
		return about + ": " + parts[i]
	}
	return c.Text
}

// ClaimExperiments names the experiments that claims are measured on.
func ClaimExperiments(claims []Claim) []string {
	return experimentsOf(claims, func(measurement) bool { return true })
}

// experimentsOf names the experiments of the measurements that count.
func experimentsOf(claims []Claim, counts func(measurement) bool) []string {
	var names []string
	for _, c := range claims {
		for i := range c.numbers() {
			m := measurements()[measureKey{c.ID, i}]
			for _, name := range m.from {
				if counts(m) && !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

// Apart says whether a claim is measured on an experiment that takes so long
// that it runs only when it is asked for by name.
func (c Claim) Apart() bool { return slices.ContainsFunc(ClaimExperiments([]Claim{c}), apart) }
