package capacity

import (
	"cmp"
	"context"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/sparseserve/sparseserve/experiments/bracket"
	"github.com/sparseserve/sparseserve/experiments/config"
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

// Trial is the outcome of one run of a search.
type Trial struct {
	Stage          string
	Rate           float64 // requests/s
	Seed           uint64
	Bounded        []float64 // value of each bounded statistic, s
	Rejected       float64   // share of the requests
	Missed         float64   // share that was rejected or missed a bound; 0 where none is asked for
	Unstable       bool      // the queue grows without end
	Completed      int
	ThroughputTokS float64
	Hash           string
	requests       int     // of the run
	e2e            float64 // mean, s
}

// limits are the service level for trials, with its bounds on a machine.
type limits struct {
	config.SLO
	bounds []config.Bound
}

// why names the bounds of the service level that the trials miss in their mean; it is empty if they
// meet the level. A queue that grows without end in half of the runs fails the level.
func (l limits) why(trials []Trial) []string {
	if slices.ContainsFunc(trials, func(t Trial) bool { return t.Completed == 0 }) {
		return []string{"nothing completed"}
	}
	mean := meanTrial(trials)
	why := l.Exceeded(mean.Rejected, mean.Missed, mean.Bounded, l.bounds)
	if mean.Unstable && !slices.Contains(why, "delay") {
		why = append(why, "queue")
	}
	return why
}

// holds reports whether the trials meet the service level.
func (l limits) holds(trials []Trial) bool { return len(l.why(trials)) == 0 }

// search finds one candidate's goodput: first by the mean over seeds, then per seed.
type search struct {
	spec  config.GoodputSearch
	slo   limits
	seeds []uint64
	unit  string // of rates, in words
	// probe runs one rate with some seeds and returns a trial of each.
	probe  func(ctx context.Context, rate float64, seeds []uint64) ([]Trial, error)
	shared []Trial            // at rates that all seeds ran, seeds together
	own    map[uint64][]Trial // at rates that one seed ran
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
		return err == nil && s.slo.holds(s.at(rate)), err
	})
	return err
}

// try runs a rate with all seeds, unless it has been run.
func (s *search) try(ctx context.Context, stage string, rate float64) error {
	if slices.ContainsFunc(s.shared, func(t Trial) bool { return t.Rate == rate }) {
		return nil
	}
	trials, err := s.probe(ctx, rate, s.seeds)
	if err != nil {
		return err
	}
	for i := range trials {
		trials[i].Stage = stage
	}
	s.shared = append(s.shared, trials...)
	return nil
}

// narrowSeeds narrows each seed's own bracket.
func (s *search) narrowSeeds(ctx context.Context) error {
	own := make([][]Trial, len(s.seeds))
	group, ctx := errgroup.WithContext(ctx)
	for i, seed := range s.seeds {
		group.Go(func() error {
			_, err := s.line().Find(s.seedOutcomes(seed, nil), func(rate float64, _ bool) (bool, error) {
				trials, err := s.probe(ctx, rate, []uint64{seed})
				if err != nil {
					return false, err
				}
				trials[0].Stage = stageSeed
				own[i] = append(own[i], trials[0])
				return s.slo.holds(trials), nil
			})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	s.own = map[uint64][]Trial{}
	for i, seed := range s.seeds {
		s.own[seed] = own[i]
	}
	return nil
}

// at returns the trials of all seeds at a rate.
func (s *search) at(rate float64) []Trial {
	var trials []Trial
	for _, t := range s.shared {
		if t.Rate == rate {
			trials = append(trials, t)
		}
	}
	return trials
}

// rates lists the rates that all seeds ran, in the order of the search.
func (s *search) rates() []float64 {
	var rates []float64
	for _, t := range s.shared {
		if !slices.Contains(rates, t.Rate) {
			rates = append(rates, t.Rate)
		}
	}
	return rates
}

// outcomes judges each rate by the mean over seeds.
func (s *search) outcomes() (tried []bracket.Tried) {
	for _, rate := range s.rates() {
		tried = append(tried, bracket.Tried{At: rate, Below: s.slo.holds(s.at(rate))})
	}
	return tried
}

// seedOutcomes judges each rate by one seed alone.
func (s *search) seedOutcomes(seed uint64, own []Trial) (tried []bracket.Tried) {
	for _, t := range append(slices.Clone(s.shared), own...) {
		if t.Seed == seed {
			tried = append(tried, bracket.Tried{At: t.Rate, Below: s.slo.holds([]Trial{t})})
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
func fourDigits(rate float64) float64 { return bracket.Digits(rate, 4) }
