package config

import "fmt"

// GoodputSearch is the [goodput] table of a sweep: the settings of the search for the largest
// sustained rate.
type GoodputSearch struct {
	// first rate to try; 0: the configuration's lowest
	Start float64 `toml:"start" unit:"requests/s" range:">= 0, <= 1e+09"`
	// relative width at which bisection stops
	Width float64 `toml:"width" unit:"share" range:">= 0.001, <= 1"`
	// highest rate to try
	Max float64 `toml:"max" unit:"requests/s" range:"> 0, <= 1e+09"`
	// stop when the bracket is narrow enough: do not try rates outside it, and do not search each
	// seed separately
	Coarse bool `toml:"coarse"`

	// Given is set where the configuration has a key of [goodput].
	Given bool `toml:"-"`
	// Near is set where Start is close to the goodput that is looked for: the search then steps
	// away from it by little, and by more and more.
	Near bool `toml:"-"`
}

// minStart is the smallest permitted first rate of a search, in requests/s.
const minStart = 1e-9

// DefaultGoodputSearch returns the default search settings.
func DefaultGoodputSearch() GoodputSearch { return GoodputSearch{Width: 0.02, Max: 1000} }

// apply reads the [goodput] table of a document, if it has one.
func (g *GoodputSearch) apply(doc *document) error {
	table, ok := doc.tree["goodput"]
	if !ok {
		return nil
	}
	if err := doc.decode("goodput", g); err != nil {
		return err
	}
	g.Given = g.Given || len(table.(map[string]any)) > 0
	if g.Start > 0 && g.Start < minStart {
		return doc.locate(&KeyError{Key: "goodput.start", Value: Show(g.Start),
			Reason: fmt.Sprintf("must be at least %g, or 0", minStart)})
	}
	if g.Start > g.Max {
		return doc.locate(&KeyError{Key: "goodput.start", Value: Show(g.Start),
			Reason: "is above goodput.max = " + Show(g.Max)})
	}
	return nil
}
