package config

import (
	"math"
)

// GoodputSearch is the [goodput] table of a sweep: how the largest sustained
// rate is looked for.
type GoodputSearch struct {
	Start float64 `toml:"start"` // first rate, requests/s; 0 = the lowest of the configuration
	Width float64 `toml:"width"` // of the last bracket, relative to its lower end
	Max   float64 `toml:"max"`   // no rate above is tried, requests/s
	// Coarse ends the search with the bracket: it does not check that verdicts
	// hold beyond its ends, and narrows no seed's own.
	Coarse bool `toml:"coarse"`
}

// DefaultGoodputSearch returns the search that a sweep starts from.
func DefaultGoodputSearch() GoodputSearch { return GoodputSearch{Width: 0.02, Max: 1000} }

// apply reads the [goodput] table of a document, if it has one.
func (g *GoodputSearch) apply(doc *document) error {
	value, ok := doc.tree["goodput"]
	if !ok {
		return nil
	}
	table, err := doc.table("goodput", value)
	if err != nil {
		return err
	}
	for _, key := range doc.keys("goodput.", table) {
		if err := decodeInto(g, "goodput.", key, table[key]); err != nil {
			return doc.locate(err)
		}
	}
	bad := func(key string, v float64, reason string) error {
		return doc.locate(&KeyError{Key: "goodput." + key, Value: Show(v), Reason: reason})
	}
	switch {
	case !(g.Start >= 0) || math.IsInf(g.Start, 0):
		return bad("start", g.Start, "must be 0 or above, in requests/s")
	case !(g.Width >= 0.001 && g.Width <= 1):
		return bad("width", g.Width, "must be from 0.001 to 1")
	case !(g.Max > 0) || math.IsInf(g.Max, 0):
		return bad("max", g.Max, "must be above 0, in requests/s")
	case g.Start > g.Max:
		return bad("start", g.Start, "is above goodput.max = "+Show(g.Max))
	}
	return nil
}
