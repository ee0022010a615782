package capacity

import (
	"fmt"
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/traces"
)

// Candidate is a server whose goodput is looked for: a point of a sweep,
// whatever its rate and seed.
type Candidate struct {
	Label    string
	Settings []config.Setting // by axes, the rate apart
	Point    config.Point     // without rate and seed
	Seeds    []uint64
	Start    float64 // first rate to try, requests/s
}

// Candidates lists what the sweep compares: its points less rates and seeds.
func Candidates(s *config.Sweep) ([]Candidate, error) {
	points, err := s.Points()
	if err != nil { // one of them is listed twice
		return nil, err
	}
	var candidates []Candidate
	hashes := config.NewHasher()
	seen := map[string]int{}
	for _, swept := range points {
		p := swept.Point
		if p.Workload.Arrivals == traces.ArrivalsTrace {
			return nil, fmt.Errorf("%s: workload.arrivals = %q: arrivals as recorded have no rate to look for",
				s.Source(), p.Workload.Arrivals)
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
			settings := slices.DeleteFunc(slices.Clone(swept.Settings), func(s config.Setting) bool {
				return s.Key == "workload.rate" || s.Key == "seed"
			})
			candidates = append(candidates, Candidate{
				Label: p.System.Name + config.SettingsLabel(settings), Settings: settings, Point: p, Start: math.Inf(1),
			})
		}
		c := &candidates[j]
		c.Start = math.Min(c.Start, rate)
		if !slices.Contains(c.Seeds, seed) {
			c.Seeds = append(c.Seeds, seed)
		}
	}
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
	return candidates, nil
}
