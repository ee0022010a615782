package capacity

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/traces"
)

// Candidate is a server whose goodput is searched for: a point of a sweep, without its rate and
// seed.
type Candidate struct {
	config.Point // without rate and seed, also in its settings
	Seeds        []uint64
	Start        float64 // first rate to try, requests/s
}

// Label returns the name of the system and what the axes set.
func (c *Candidate) Label() string { return c.SystemLabel() + config.SettingsLabel(c.Settings) }

// atSeeds lists the runs of a candidate with seeds, after set has changed each.
func (c *Candidate) atSeeds(seeds []uint64, set func(*config.Point)) []config.Point {
	points := make([]config.Point, len(seeds))
	for i, seed := range seeds {
		points[i] = c.Point
		set(&points[i])
		points[i].Seed = seed
		points[i].Name = config.PointName(&points[i])
	}
	return points
}

// Runs lists the runs of a candidate, one per seed.
func (c *Candidate) Runs() []config.Point { return c.atSeeds(c.Seeds, func(*config.Point) {}) }

// Candidates lists the sweep's points without rates and seeds.
func Candidates(ctx context.Context, s *config.Sweep) ([]Candidate, error) {
	candidates, err := compared(ctx, s, true)
	for i := range candidates {
		c := &candidates[i]
		if s.Goodput.Start > 0 {
			c.Start = s.Goodput.Start
		}
		c.Start = math.Min(c.Start, s.Goodput.Max)
		if !s.SeedsGiven {
			c.Seeds = []uint64{1, 2, 3}
		}
	}
	return candidates, err
}

// UnderLoad lists the sweep's points without seeds, each under its lowest rate.
func UnderLoad(ctx context.Context, s *config.Sweep) ([]Candidate, error) {
	candidates, err := compared(ctx, s, false)
	for i := range candidates {
		c := &candidates[i]
		c.Point.Workload.Rate = c.Start
	}
	return candidates, err
}

// compared lists the points without seeds and, for a search, without rates.
func compared(ctx context.Context, s *config.Sweep, search bool) ([]Candidate, error) {
	points, err := s.Points(ctx)
	if err != nil { // one of them is listed twice
		return nil, err
	}
	var candidates []Candidate
	hashes := config.NewHasher()
	seen := map[string]int{}
	for _, p := range points {
		if why := noRate(&p.Workload); search && why != "" {
			return nil, fmt.Errorf("%s: %s", s.Source(), why)
		}
		seed, rate := p.Seed, p.Workload.Rate
		p.Seed, p.Workload.Rate = 0, 0
		hash, err := hashes.Hash(&p)
		if err != nil {
			return nil, err
		}
		j, ok := seen[hash]
		if !ok {
			j = len(candidates)
			seen[hash] = j
			p.Settings = slices.DeleteFunc(slices.Clone(p.Settings), func(s config.Setting) bool {
				return s.Key == "workload.rate" || s.Key == "seed"
			})
			candidates = append(candidates, Candidate{Point: p, Start: math.Inf(1)})
		}
		c := &candidates[j]
		c.Start = math.Min(c.Start, rate)
		if !slices.Contains(c.Seeds, seed) {
			c.Seeds = append(c.Seeds, seed)
		}
	}
	return candidates, nil
}

// noRate explains why a workload has no rate to search for, or returns "".
func noRate(w *traces.Spec) string {
	const instead = "set workload.arrivals to poisson, gamma or fixed"
	switch {
	case w.Arrivals == traces.ArrivalsTrace:
		return fmt.Sprintf("workload.arrivals = %q: arrivals as recorded have no rate to look for; %s",
			w.Arrivals, instead)
	case w.Arrivals == traces.ArrivalsClosed:
		return fmt.Sprintf("workload.arrivals = %q: a closed loop sends as fast as it is answered and "+
			"has no rate to look for; %s, "+
			"or compare clients with simulate --set workload.concurrency=[1,2,4,8]", w.Arrivals, instead)
	case len(w.Stages) > 0:
		return "workload.stages: have rates of their own, and the search looks for one; leave stages out"
	}
	return ""
}
