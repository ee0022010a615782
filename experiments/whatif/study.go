package whatif

import (
	"context"
	"fmt"
	"slices"

	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// Steps of a range: its ends for a tornado, more for a heat map.
const (
	TornadoSteps = 2
	HeatSteps    = 5
)

// Study is a what-if of a configuration.
type Study struct {
	Config     string   // as LoadVaried has it
	Set        []string // flags
	Metric     Metric
	Ranges     []Range // of a tornado, a knob each
	Heat       []Range // two, or none
	Thresholds []Threshold
	Steps      int // of a range; 0 = TornadoSteps, HeatSteps

	base    *config.Sweep
	cases   []subject // of the configuration itself
	goodput config.GoodputSearch
	// first marks a first look: if the configuration sets no key of [goodput], a tornado or heat map
	// of goodput uses one seed and searches within firstWidth, because it has many values.
	first bool
}

// firstWidth is the relative accuracy of goodput in a first look.
const firstWidth = 0.05

// variant is the configuration with other settings.
type variant struct {
	knobs       []*Knob // one of a tornado, two of a heat map
	values      []string
	fallible    bool // left out if the configuration refuses it
	row, column int  // of a heat map; -1 of a tornado
	subjects    []subject
}

// prepare reads the configuration and all variants of the tornado and the heat map before anything
// runs. Refused variants of default knobs are omitted with a note.
func (s *Study) prepare(ctx context.Context, e *Evaluator) (variants []variant, notes []string,
	err error) {
	if err := s.checkSize(); err != nil {
		return nil, nil, err
	}
	if s.base, err = s.load(nil, s.Metric.Search()); err != nil {
		return nil, nil, err
	}
	s.goodput = s.base.Goodput
	if s.first = s.Metric.Search() && !s.goodput.Given && len(s.Thresholds) == 0; s.first {
		s.goodput.Coarse, s.goodput.Width = true, firstWidth
	}
	if s.cases, err = s.servers(e, s.base); err != nil {
		return nil, nil, err
	}
	for i := range s.cases {
		if one := &s.cases[i]; s.Metric.Search() {
			if err := capacity.CheckRefused(one.point(), one.seeds()[0]); err != nil {
				return nil, nil, err
			}
		}
	}
	cfg := s.base.Variants[0].Config
	if cfg.NoRates && !s.Metric.Search() {
		return nil, nil, fmt.Errorf("--metric %s: workload.rate: not set, and %s needs one load; "+
			"set it, as in --set workload.rate=1", s.Metric.Name, s.Metric.Name)
	}
	if rates := len(cfg.Rates) * len(cfg.Clients); !s.Metric.Search() && rates > 1 {
		return nil, nil, fmt.Errorf("--metric %s: the configuration has %d loads and is about one; "+
			"choose it, as in --set workload.rate=%s",
			s.Metric.Name, rates, text(cfg.Rates[0]))
	}

	for _, v := range s.wanted() {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		first := !slices.ContainsFunc(variants,
			func(o variant) bool { return slices.Equal(o.knobs, v.knobs) })
		var doubts []warn.Warning
		v.subjects, doubts, err = s.subjectsOf(e, cfg, &v)
		notes = addDoubts(notes, doubts, first)
		switch {
		case err != nil && v.fallible:
			notes = append(notes, fmt.Sprintf("%s = %s is left out: %v", v.knobs[0].Name, v.values[0], err))
		case err != nil:
			return nil, nil, err
		default:
			variants = append(variants, v)
		}
	}
	return variants, notes, s.checkMetric(variants)
}

// wanted lists the variants of the tornado and of the heat map.
func (s *Study) wanted() (all []variant) {
	for i := range s.Ranges {
		r := &s.Ranges[i]
		for _, value := range r.At(s.steps(TornadoSteps)) {
			all = append(all, variant{knobs: []*Knob{&r.Knob}, values: []string{value},
				fallible: r.fallible, row: -1})
		}
	}
	if len(s.Heat) == 0 {
		return all
	}
	a, b := &s.Heat[0], &s.Heat[1]
	for row, y := range b.At(s.steps(HeatSteps)) {
		for column, x := range a.At(s.steps(HeatSteps)) {
			all = append(all, variant{knobs: []*Knob{&a.Knob, &b.Knob}, values: []string{x, y}, row: row,
				column: column})
		}
	}
	return all
}

// subjectsOf returns the servers of a variant, as subjects does.
func (s *Study) subjectsOf(e *Evaluator, cfg *config.Config, v *variant) (all []subject,
	doubts []warn.Warning, err error) {
	var settings []config.Setting
	for i, k := range v.knobs {
		one, err := k.settings(cfg, v.values[i])
		if err != nil {
			return nil, nil, err
		}
		settings = append(settings, one...)
	}
	return s.subjects(e, settings)
}

// addDoubts adds warnings of a variant to notes: warnings of keys without effect only for the first
// variant of its kind, because the others have the same; warnings of cards once each.
func addDoubts(notes []string, doubts []warn.Warning, first bool) []string {
	for _, w := range doubts {
		if first || w.Kind == warn.OtherCard && !slices.Contains(notes, w.Text) {
			notes = append(notes, w.Text)
		}
	}
	return notes
}

// checkSize refuses more values than a sweep may have, before they are generated.
func (s *Study) checkSize() error {
	n := 0
	for i := range s.Ranges {
		n += len(s.Ranges[i].At(s.steps(TornadoSteps)))
	}
	if len(s.Heat) > 0 {
		n += len(s.Heat[0].At(s.steps(HeatSteps))) * len(s.Heat[1].At(s.steps(HeatSteps)))
	}
	if n > config.MostPoints {
		return fmt.Errorf("--vary, --heat: %d values, a what-if has at most %d; take out values, or "+
			"give fewer --steps", n, config.MostPoints)
	}
	return nil
}

func (s *Study) steps(usual int) int {
	if s.Steps > 0 {
		return s.Steps
	}
	return usual
}

// Configs lists the varied configuration; call it after Check.
func (s *Study) Configs() []*config.Config { return s.base.Configs() }

// Paths lists the files of the configuration, and its values that may be a file; call it after
// Check.
func (s *Study) Paths() []string { return s.base.Paths() }

func (s *Study) load(settings []config.Setting, search bool) (*config.Sweep, error) {
	return config.LoadVaried(s.Config, s.Set, [][]config.Setting{settings}, search)
}

// subjects returns the servers of a variant, one per server of the configuration. doubts are
// warnings about keys that the variant sets, unless the configuration has them already.
func (s *Study) subjects(e *Evaluator, settings []config.Setting) (all []subject,
	doubts []warn.Warning, err error) {
	sweep, err := s.load(settings, s.Metric.Search())
	if err != nil {
		return nil, nil, err
	}
	known := warn.Texts(s.base.Variants[0].Config.Unused)
	doubts = slices.DeleteFunc(slices.Clone(sweep.Variants[0].Config.Unused),
		func(w warn.Warning) bool { return slices.Contains(known, w.Text) })
	all, err = s.servers(e, sweep)
	if err == nil && len(all) != len(s.cases) {
		err = fmt.Errorf("--vary: %s = %s makes %d servers of %d; a value changes servers and adds none",
			settings[0].Key, config.Show(settings[0].Value), len(all), len(s.cases))
	}
	return all, doubts, err
}

// servers lists the servers of one variant of the configuration.
func (s *Study) servers(e *Evaluator, sweep *config.Sweep) ([]subject, error) {
	all, err := e.subjects(sweep, s.Metric.Search())
	for i := range all {
		if s.first && !sweep.SeedsGiven {
			all[i].candidate.Seeds = all[i].candidate.Seeds[:1]
		}
	}
	return all, err
}

// Do runs the study.
func (s *Study) Do(ctx context.Context, e *Evaluator) (*Result, []string, error) {
	variants, notes, err := s.prepare(ctx, e)
	if err != nil {
		return nil, nil, err
	}
	tests, err := s.prepareThresholds(e)
	if err != nil {
		return nil, nil, err
	}
	label := s.Metric.Label
	if s.Metric.Search() {
		label = "goodput (" + capacity.RateUnit(&s.cases[0].point().Workload) + ")"
	}
	out := &Result{Format: 1, Name: s.base.Name, Metric: s.Metric.Name, Label: label,
		Higher: s.Metric.Higher,
		Notes:  slices.Concat([]string{}, notes), config: s.base.Variants[0].Config}
	if s.Metric.Search() {
		out.Notes = append(out.Notes, fmt.Sprintf("goodput is known within goodput.width = %g %%; a "+
			"change of less is none", 100*s.goodput.Width))
	}
	if s.first {
		out.Notes = append(out.Notes, "a first look, with one seed and no intervals; --set "+
			"goodput.coarse=false takes three seeds, within 2 %")
	}
	values, err := s.values(ctx, e, variants)
	if err != nil {
		return nil, e.notes, err
	}
	for i := range s.cases {
		c := s.caseOf(&s.cases[i])
		if c.Base = values[i]; c.Base.none {
			return nil, e.notes, fmt.Errorf("%s serves no request, so it has no %s to change", c.Name,
				s.Metric.Name)
		}
		s.fill(out, c, i, variants, values[len(s.cases):])
		out.Cases = append(out.Cases, c)
	}
	for i := range tests {
		t := &tests[i]
		crossing, err := t.find(ctx)
		if err != nil {
			return nil, e.notes, err
		}
		c := out.Cases[t.index]
		c.Thresholds = append(c.Thresholds, crossing)
	}
	return out, e.notes, nil
}

// values evaluates the cases, and then the variants of each, in their order.
func (s *Study) values(ctx context.Context, e *Evaluator, variants []variant) ([]Value, error) {
	values, err := e.evaluate(ctx, &s.Metric, s.goodput, s.cases)
	if err != nil {
		return nil, err
	}
	var all []subject
	near := s.goodput
	for i := range variants {
		for j, one := range variants[i].subjects {
			if base := values[j].Value; s.first && base > 0 {
				near.Near, one.candidate.Start = true, base
			}
			all = append(all, one)
		}
	}
	more, err := e.evaluate(ctx, &s.Metric, near, all)
	return append(values, more...), err
}

// Check returns an error if the study cannot run.
func (s *Study) Check(ctx context.Context) error {
	e := &Evaluator{}
	if _, _, err := s.prepare(ctx, e); err != nil {
		return err
	}
	_, err := s.prepareThresholds(e)
	return err
}
