package experiments

import (
	"fmt"
	"math"
	"slices"
)

// Candidate is a server whose goodput is looked for: a point of a sweep,
// whatever its rate and seed.
type Candidate struct {
	Label    string
	Settings []Setting // by axes, the rate apart
	Point    Point     // without rate and seed
	Seeds    []uint64
	Start    float64 // first rate to try, requests/s
}

// Candidates lists what the sweep compares: its points less rates and seeds.
func (s *Sweep) Candidates() ([]Candidate, error) {
	if _, err := s.Points(); err != nil { // one of them stands there twice
		return nil, err
	}
	var candidates []Candidate
	hashes := newHasher()
	seen := map[string]int{}
	for i := range s.Variants {
		v := &s.Variants[i]
		if v.Config.ReplaysTimes() {
			return nil, fmt.Errorf("%s: workload.arrivals = %q: arrivals as recorded have no rate to look for", s.file.name, v.Config.Workload.Arrivals)
		}
		for _, p := range s.points(v) {
			seed, rate := p.Seed, p.Workload.Rate
			p.Seed, p.Workload.Rate = 0, 0
			hash, err := hashes.hash(&p)
			if err != nil {
				return nil, err
			}
			j, ok := seen[hash]
			if !ok {
				j = len(candidates)
				seen[hash] = j
				settings := slices.DeleteFunc(slices.Clone(v.Settings), func(s Setting) bool {
					return s.Key == "workload.rate" || s.Key == "seed"
				})
				candidates = append(candidates, Candidate{
					Label: p.System.Name + settingsLabel(settings), Settings: settings, Point: p, Start: math.Inf(1),
				})
			}
			c := &candidates[j]
			c.Start = math.Min(c.Start, rate)
			if !slices.Contains(c.Seeds, seed) {
				c.Seeds = append(c.Seeds, seed)
			}
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
