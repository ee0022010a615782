package whatif

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments"
	"github.com/sparseserve/sparseserve/experiments/config"
)

// parse reads the flags of a study that depend on no configuration. Errors name the flag.
func (s *Study) parse() (err error) {
	if s.Steps < 0 || s.Steps == 1 || s.Steps > config.MostPoints {
		return fmt.Errorf("--steps %d: a range has 2 to %d values", s.Steps, config.MostPoints)
	}
	s.Config = cmp.Or(s.Config, experiments.Default)
	if s.metric, err = MetricNamed(s.Metric); err != nil {
		return err
	}
	for _, name := range s.Thresholds {
		t, err := ThresholdNamed(name)
		if err != nil {
			return err
		}
		s.thresholds = append(s.thresholds, t)
	}
	for _, flag := range s.Vary {
		r, err := ParseRange(flag)
		if err != nil {
			return err
		}
		if rangeOf(s.ranges, r.Knob.Name) >= 0 {
			return fmt.Errorf("--vary %s: %s is varied twice", flag, r.Knob.Name)
		}
		s.ranges = append(s.ranges, r)
	}
	return nil
}

// usual sets the ranges that no flag gives.
func (s *Study) usual() (err error) {
	switch {
	case s.Heat != "":
		s.heat, err = heatOf(s.Heat, slices.Concat(s.ranges, Defaults(s.cfg)))
	case len(s.ranges)+len(s.thresholds) == 0:
		s.ranges = Defaults(s.cfg)
	}
	return err
}

func rangeOf(all []Range, knob string) int {
	return slices.IndexFunc(all, func(r Range) bool { return r.Knob.Name == knob })
}

// heatOf finds the ranges of the two knobs of a heat map.
func heatOf(flag string, all []Range) (heat []Range, err error) {
	a, b, ok := strings.Cut(flag, ",")
	if !ok || a == b {
		return nil, fmt.Errorf("--heat %s: want two knobs, as in link,hbm", flag)
	}
	for _, name := range []string{a, b} {
		knob, err := KnobNamed(strings.TrimSpace(name))
		if err != nil {
			return nil, fmt.Errorf("--heat %s: %s: %w", flag, name, err)
		}
		i := rangeOf(all, knob.Name)
		if i < 0 {
			return nil, fmt.Errorf("--heat %s: %s has no usual values here; give them, as in --vary "+
				"%s=LOW..HIGH", flag, name, name)
		}
		heat = append(heat, all[i])
	}
	return heat, nil
}
