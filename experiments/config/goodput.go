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

// check returns an error if the [goodput] table is impossible, or nil.
func (g *GoodputSearch) check() *KeyError {
	err := checkTable(g, "goodput")
	if err != nil || g.Start == 0 || g.Start >= minStart && g.Start <= g.Max {
		return err
	}
	reason := "is above goodput.max = " + Show(g.Max)
	if g.Start < minStart {
		reason = fmt.Sprintf("must be at least %g, or 0", minStart)
	}
	return &KeyError{Key: "goodput.start", Value: Show(g.Start), Reason: reason}
}
