package capacity

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

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
	Bounded        []float64 // what each bound of the service level bounds, s
	Rejected       float64   // share of the requests
	Missed         float64   // share that was rejected or missed a bound; 0 where none is asked for
	Unstable       bool      // the queue grows without end
	Completed      int
	ThroughputTokS float64
	Hash           string
	requests       int     // of the run
	e2e            float64 // mean, s
	// Cut names the part of the service level that ended the run early because it was missed for
	// certain. Such a trial has no other values. Empty for a whole run.
	Cut string
}

// limits are the service level for trials.
type limits struct {
	bounds    []config.Bound
	requests  bool    // each request is held to the bounds
	missShare float64 // of requests that may be rejected or miss a bound
}

// why names the bounds of the service level that the trials miss in their mean; it is empty if they
// meet the level. A queue that grows without end in half of the runs fails the level.
func (l limits) why(trials []Trial) []string {
	if i := slices.IndexFunc(trials, func(t Trial) bool { return t.Cut != "" }); i >= 0 {
		return []string{trials[i].Cut}
	}
	if slices.ContainsFunc(trials, func(t Trial) bool { return t.Completed == 0 }) {
		return []string{"nothing completed"}
	}
	mean := meanTrial(trials)
	var why []string
	if mean.Rejected > l.missShare {
		why = append(why, "rejected")
	}
	if l.requests && mean.Missed > l.missShare && len(why) == 0 {
		why = append(why, "requests")
	}
	late := false
	for i, b := range l.bounds {
		if !l.requests && mean.Bounded[i] > b.Limit {
			why, late = append(why, b.Name), late || b.Name == "delay"
		}
	}
	if mean.Unstable && !late {
		why = append(why, "queue")
	}
	return why
}

// outcome is a rate and whether it is sustained.
type outcome struct {
	rate  float64
	holds bool
}

// bracketOf returns the largest rate that holds below every failing rate, and the smallest failing
// rate: 0 and infinity if there is none.
func bracketOf(tried []outcome) (low, high float64) {
	high = math.Inf(1)
	for _, v := range tried {
		if !v.holds {
			high = math.Min(high, v.rate)
		}
	}
	for _, v := range tried {
		if v.holds && v.rate < high {
			low = math.Max(low, v.rate)
		}
	}
	return low, high
}

// turned returns a rate that holds above a rate that fails, if any.
func turned(tried []outcome) (holds, fails float64, ok bool) {
	_, fails = bracketOf(tried)
	for _, v := range tried {
		if v.holds && v.rate > fails {
			holds, ok = math.Max(holds, v.rate), true
		}
	}
	return holds, fails, ok
}

// next returns the rate to try after those tried; more is false when the
// bracket is narrow or leaves the range of rates.
func next(g *config.GoodputSearch, tried []outcome) (rate float64, stage string, more bool) {
	low, high := bracketOf(tried)
	switch {
	case len(tried) == 0:
		return g.Start, stageBracket, true
	case low == 0:
		rate = fourDigits(high / stride(g, len(tried)))
		return rate, stageBracket, rate >= leastRate
	case math.IsInf(high, 1):
		rate = math.Min(fourDigits(low*stride(g, len(tried))), g.Max)
		return rate, stageBracket, rate > low
	}
	rate = fourDigits((low + high) / 2)
	return rate, stageBisect, high-low > g.Width*low && low < rate && rate < high
}

// stride returns the factor between two rates of a bracket, after a number of tried rates. It is 2.
// With Near it begins slightly below the width of the last bracket and is squared with each rate,
// because most knobs change little, so two rates usually suffice.
func stride(g *config.GoodputSearch, tried int) float64 {
	if !g.Near {
		return 2
	}
	return math.Min(2, math.Pow(1+0.98*g.Width, math.Exp2(float64(tried-1))))
}

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
		low, high := bracketOf(s.outcomes())
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

func (s *search) narrow(ctx context.Context) error {
	for {
		rate, stage, more := next(&s.spec, s.outcomes())
		if !more {
			return nil
		}
		if err := s.try(ctx, stage, rate); err != nil {
			return err
		}
	}
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
			for {
				rate, _, more := next(&s.spec, s.seedOutcomes(seed, own[i]))
				if !more {
					return nil
				}
				trials, err := s.probe(ctx, rate, []uint64{seed})
				if err != nil {
					return err
				}
				trials[0].Stage = stageSeed
				own[i] = append(own[i], trials[0])
			}
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
func (s *search) outcomes() []outcome {
	var tried []outcome
	for _, rate := range s.rates() {
		tried = append(tried, outcome{rate, len(s.slo.why(s.at(rate))) == 0})
	}
	return tried
}

// seedOutcomes judges each rate by one seed alone.
func (s *search) seedOutcomes(seed uint64, own []Trial) []outcome {
	var tried []outcome
	for _, t := range append(slices.Clone(s.shared), own...) {
		if t.Seed == seed {
			tried = append(tried, outcome{t.Rate, len(s.slo.why([]Trial{t})) == 0})
		}
	}
	return tried
}

// warnings lists the caveats of the goodput.
func (s *search) warnings(requests int) []warn.Warning {
	var warnings []warn.Warning
	unit := cmp.Or(s.unit, loadRate)
	low, high := bracketOf(s.outcomes())
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
	if holds, fails, ok := turned(s.outcomes()); ok {
		warnings = append(warnings, warn.New(warn.NotMonotone,
			"not monotone: %g %s fails and %g holds; the "+
				"goodput is that below every failure", fails, unit, holds))
	}
	for _, seed := range s.seeds {
		if holds, fails, ok := turned(s.seedOutcomes(seed, s.own[seed])); ok {
			warnings = append(warnings, warn.New(warn.NotMonotone,
				"not monotone with seed %d: %g %s fails and "+
					"%g holds", seed, fails, unit, holds))
		}
	}
	if len(s.seeds) < leastSeeds {
		warnings = append(warnings, warn.New(warn.FewSeeds,
			"%d of at least %d seeds: no interval", len(s.seeds),
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
func fourDigits(rate float64) float64 {
	v, err := strconv.ParseFloat(strconv.FormatFloat(rate, 'g', 4, 64), 64)
	if err != nil {
		panic(err)
	}
	return v
}
