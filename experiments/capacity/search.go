package capacity

import (
	"cmp"
	"context"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/sparseserve/sparseserve/experiments/bracket"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// Stages of a search.
const (
	stageBracket = "bracket" // doubles or halves the rate
	stageBisect  = "bisect"
	stageCheck   = "check" // looks beyond both ends of the last bracket
	stageSeed    = "seed"  // narrows one seed's own bracket
)

// checkStep is the factor beyond both ends of the last bracket at which a search verifies that
// outcomes do not reverse.
const checkStep = 1.1

// search finds one candidate's goodput: first by the mean over seeds, then per seed.
type search struct {
	spec  config.GoodputSearch
	seeds []uint64
	unit  string // of rates, in words
	// probe tries one rate with some seeds.
	probe  func(ctx context.Context, stage string, rate float64, seeds []uint64) (*attempt, error)
	shared []*attempt            // with all seeds
	own    map[uint64][]*attempt // with one seed
}

// run carries out the search. All seeds run at the same rates with the same arrivals, except for
// extra rates that a seed's own bracket needs.
func (s *search) run(ctx context.Context) error {
	for checked := -1.0; ; {
		if err := s.narrow(ctx); err != nil {
			return err
		}
		if s.spec.Coarse {
			return nil
		}
		low, high := bracket.Ends(s.outcomes())
		if low == 0 || math.IsInf(high, 1) || low == checked {
			return s.narrowSeeds(ctx)
		}
		checked = low
		for _, rate := range []float64{fourDigits(low / checkStep), fourDigits(high * checkStep)} {
			if err := s.try(ctx, stageCheck, rate); err != nil {
				return err
			}
		}
	}
}

// line returns the rates of a search. With Near the factor between two rates begins slightly below
// the width of the last bracket and is squared with each rate, because most knobs change little, so
// two rates usually suffice.
func (s *search) line() *bracket.Line {
	g := &s.spec
	l := &bracket.Line{Start: g.Start, Least: leastRate, Most: g.Max, Width: g.Width,
		Round: fourDigits}
	if g.Near {
		l.Stride = func(tried int) float64 {
			return math.Min(2, math.Pow(1+0.98*g.Width, math.Exp2(float64(tried-1))))
		}
	}
	return l
}

// narrow narrows the bracket of the mean over seeds.
func (s *search) narrow(ctx context.Context) error {
	_, err := s.line().Find(s.outcomes(), func(rate float64, bisects bool) (bool, error) {
		stage := stageBracket
		if bisects {
			stage = stageBisect
		}
		err := s.try(ctx, stage, rate)
		return err == nil && s.at(rate).holds(), err
	})
	return err
}

// try runs a rate with all seeds, unless it has been run.
func (s *search) try(ctx context.Context, stage string, rate float64) error {
	if s.at(rate) != nil {
		return nil
	}
	a, err := s.probe(ctx, stage, rate, s.seeds)
	if err == nil {
		s.shared = append(s.shared, a)
	}
	return err
}

// narrowSeeds narrows each seed's own bracket.
func (s *search) narrowSeeds(ctx context.Context) error {
	own := make([][]*attempt, len(s.seeds))
	group, ctx := errgroup.WithContext(ctx)
	for i, seed := range s.seeds {
		group.Go(func() error {
			_, err := s.line().Find(s.seedOutcomes(seed, nil), func(rate float64, _ bool) (bool, error) {
				a, err := s.probe(ctx, stageSeed, rate, []uint64{seed})
				if err != nil {
					return false, err
				}
				own[i] = append(own[i], a)
				return a.holds(), nil
			})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	s.own = map[uint64][]*attempt{}
	for i, seed := range s.seeds {
		s.own[seed] = own[i]
	}
	return nil
}

// at returns the attempt with all seeds at a rate; nil if there is none.
func (s *search) at(rate float64) *attempt {
	for _, a := range s.shared {
		if a.load == rate {
			return a
		}
	}
	return nil
}

// outcomes judges each rate by the mean over seeds.
func (s *search) outcomes() (tried []bracket.Tried) {
	for _, a := range s.shared {
		tried = append(tried, bracket.Tried{At: a.load, Below: a.holds()})
	}
	return tried
}

// seedOutcomes judges each rate by one seed alone.
func (s *search) seedOutcomes(seed uint64, own []*attempt) (tried []bracket.Tried) {
	for _, a := range slices.Concat(s.shared, own) {
		for _, t := range a.trials {
			if t.Seed == seed {
				tried = append(tried, bracket.Tried{At: a.load, Below: a.slo.holds([]Trial{t})})
			}
		}
	}
	return tried
}

// warnings lists the caveats of the goodput.
func (s *search) warnings(requests int) []warn.Warning {
	var warnings []warn.Warning
	unit := cmp.Or(s.unit, loadRate)
	low, high := bracket.Ends(s.outcomes())
	switch {
	case low == 0:
		warnings = append(warnings, warn.New(warn.FailsEverywhere,
			"the service level fails at every rate tried, down to "+
				"%g %s", high, unit))
	case math.IsInf(high, 1):
		warnings = append(warnings, warn.New(warn.HoldsEverywhere,
			"the service level holds at every rate tried; the "+
				"goodput is at least %g %s", low, unit))
	}
	if holds, fails, ok := bracket.Turned(s.outcomes()); ok {
		warnings = append(warnings, warn.New(warn.NotMonotone,
			"not monotone: %g %s fails and %g holds; the "+
				"goodput is that below every failure", fails, unit, holds))
	}
	for _, seed := range s.seeds {
		if holds, fails, ok := bracket.Turned(s.seedOutcomes(seed, s.own[seed])); ok {
			warnings = append(warnings, warn.New(warn.NotMonotone,
				"not monotone with seed %d: %g %s fails and "+
					"%g holds", seed, fails, unit, holds))
		}
	}
	if len(s.seeds) < leastSeeds {
		warnings = append(warnings, warn.New(warn.FewSeeds,
			"%d of at least %d seeds, so there is no interval", len(s.seeds),
			leastSeeds))
	}
	if requests < leastRequests {
		warnings = append(warnings, warn.New(warn.NoisyTail,
			"P99 TBT and delay of %d requests a run are noisy; "+
				"from %d on they are steady", requests, leastRequests))
	}
	return warnings
}

const (
	leastSeeds    = 3
	leastRequests = 200
	leastRate     = 0.001 // requests/s, where a search gives up
)

// fourDigits rounds a rate, so that runs are named shortly.
func fourDigits(rate float64) float64 { return stats.Significant(rate, 4) }
