package experiments

import (
	"fmt"
	"path"
	"strings"
)

// SweepPoint is one run of a sweep.
type SweepPoint struct {
	Point
	Label    string    // Point.Name and what else the axes set
	Settings []Setting // by the axes
	Hash     string    // names the point's folder
}

// Points expands the sweep: by the axes, then system, rate and seed. Two points
// of one configuration are an error.
func (s *Sweep) Points() ([]SweepPoint, error) {
	var points []SweepPoint
	seen := map[string]string{}
	hashes := newHasher()
	for _, v := range s.Variants {
		for _, p := range v.Config.Points() {
			hash, err := hashes.hash(&p)
			if err != nil {
				return nil, err
			}
			label := p.Name + settingsLabel(v.Settings)
			if other, ok := seen[hash]; ok {
				return nil, fmt.Errorf("%s: two points are the same run: %s and %s", s.Name, other, label)
			}
			seen[hash] = label
			points = append(points, SweepPoint{p, label, v.Settings, hash})
		}
	}
	return points, nil
}

// settingsLabel names the settings that a point's name does not.
func settingsLabel(settings []Setting) string {
	var b strings.Builder
	for _, s := range settings {
		switch s.Key {
		case "system.preset", "workload.rate", "seed":
			continue
		}
		value := show(s.Value)
		if text, ok := s.Value.(string); ok {
			value = path.Base(text)
		}
		fmt.Fprintf(&b, " %s=%s", s.Key[strings.LastIndexByte(s.Key, '.')+1:], value)
	}
	return b.String()
}
