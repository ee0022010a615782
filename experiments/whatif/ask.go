package whatif

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments"
	"github.com/sparseserve/sparseserve/experiments/config"
)

// Asked is a study as given on the command line.
type Asked struct {
	Config     string   // file or built-in experiment; the default one when empty
	Set        []string // KEY=VALUE
	Vary       []string // KNOB=VALUES
	Heat       string   // A,B
	Thresholds []string
	Metric     string
	Steps      int // values of a range; 0 for the usual number
}

// Study parses the question. Ranges default to Defaults. Errors name the flag.
func (a *Asked) Study() (s *Study, err error) {
	if a.Steps < 0 || a.Steps == 1 || a.Steps > config.MostPoints {
		return nil, fmt.Errorf("--steps %d: a range has 2 to %d values", a.Steps, config.MostPoints)
	}
	s = &Study{Config: cmp.Or(a.Config, experiments.Default), Set: a.Set, Steps: a.Steps}
	if s.Metric, err = MetricNamed(a.Metric); err != nil {
		return nil, err
	}
	for _, name := range a.Thresholds {
		t, err := ThresholdNamed(name)
		if err != nil {
			return nil, err
		}
		s.Thresholds = append(s.Thresholds, t)
	}
	for _, flag := range a.Vary {
		r, err := ParseRange(flag)
		if err != nil {
			return nil, err
		}
		if rangeOf(s.Ranges, r.Knob.Name) >= 0 {
			return nil, fmt.Errorf("--vary %s: %s is varied twice", flag, r.Knob.Name)
		}
		s.Ranges = append(s.Ranges, r)
	}
	if len(s.Ranges) > 0 && a.Heat == "" {
		return s, nil
	}
	base, err := config.LoadVaried(s.Config, s.Set, [][]config.Setting{nil}, true)
	if err != nil {
		return nil, err
	}
	usual := Defaults(base.Variants[0])
	switch {
	case a.Heat != "":
		s.Heat, err = heatOf(a.Heat, slices.Concat(s.Ranges, usual))
	case len(s.Thresholds) == 0:
		s.Ranges = usual
	}
	return s, err
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
