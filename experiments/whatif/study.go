package whatif

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/traces"
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

// Result is the result of a study.
type Result struct {
	Format int     `json:"format"`
	Name   string  `json:"name"`
	Metric string  `json:"metric"`
	Label  string  `json:"label"` // with the unit
	Higher bool    `json:"higher_is_better"`
	Cases  []*Case `json:"cases"`
	// Notes list the values of default knobs that the configuration refuses, and the accuracy of
	// goodput.
	Notes []string `json:"notes"`

	config *config.Config
}

// Case is one server of the configuration, at one rate if the metric comes from runs.
type Case struct {
	Name       string        `json:"name"`
	System     string        `json:"system"`
	Model      string        `json:"model"`
	GPU        string        `json:"gpu"`
	Rate       float64       `json:"rate,omitempty"`     // requests/s, or
	Sessions   bool          `json:"sessions,omitempty"` // sessions/s
	Seeds      []uint64      `json:"seeds"`
	Requests   int           `json:"requests"` // a run
	SLO        string        `json:"slo"`
	Base       Value         `json:"base"`
	Knobs      []*KnobResult `json:"knobs"`
	Heat       *HeatMap      `json:"heat,omitempty"`
	Thresholds []*Crossing   `json:"thresholds,omitempty"`
}

// Load returns the rate in words; "" if there is none.
func (c *Case) Load() string {
	switch {
	case c.Rate == 0:
		return ""
	case c.Sessions:
		return fmt.Sprintf("%g sessions/s", c.Rate)
	}
	return fmt.Sprintf("%g req/s", c.Rate)
}

// KnobResult is the effect of a knob on a case.
type KnobResult struct {
	Knob   string   `json:"knob"`
	About  string   `json:"about"`
	Keys   []string `json:"keys"`
	Factor bool     `json:"factor"`
	Base   string   `json:"base"` // what the configuration has
	Points []Change `json:"points"`
}

// Change is the effect of one value of a knob.
type Change struct {
	Setting string `json:"setting"`
	Value
	// Change is the relative change of the value from the configuration's own. Low and High are the
	// ends of Student's t interval over the changes per seed; a seed has the same arrivals before and
	// after. They are nil for fewer than three seeds.
	Change float64  `json:"change"`
	Low    *float64 `json:"change_low"`
	High   *float64 `json:"change_high"`
}

// HeatMap has one row per value of B and one column per value of A.
type HeatMap struct {
	A       string   `json:"a"`
	B       string   `json:"b"`
	FactorA bool     `json:"factor_a"`
	FactorB bool     `json:"factor_b"`
	ValuesA []string `json:"values_a"`
	ValuesB []string `json:"values_b"`
	// Cells are the values; nil if no request was served.
	Cells [][]*float64 `json:"cells"`
}

// variant is the configuration with other settings.
type variant struct {
	knob, value string // of a tornado
	row, column int    // of a heat map; -1 of a tornado
	settings    []config.Setting
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
		return nil, nil, fmt.Errorf("--metric %s: workload.rate: not set, and %s is of one load; "+
			"set it, as in --set workload.rate=1", s.Metric.Name, s.Metric.Name)
	}
	if rates := len(cfg.Rates) * len(cfg.Clients); !s.Metric.Search() && rates > 1 {
		return nil, nil, fmt.Errorf("--metric %s: the configuration has %d loads and is about one; "+
			"choose it, as in --set workload.rate=%s",
			s.Metric.Name, rates, text(cfg.Rates[0]))
	}
	for i := range s.Ranges {
		r := &s.Ranges[i]
		for _, value := range r.At(s.steps(TornadoSteps)) {
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
			v := variant{knob: r.Knob.Name, value: value, row: -1}
			var doubts []warn.Warning
			if v.settings, err = r.Knob.settings(cfg, value); err == nil {
				v.subjects, doubts, err = s.subjects(e, v.settings)
			}
			notes = addDoubts(notes, doubts, !slices.ContainsFunc(variants,
				func(o variant) bool { return o.knob == v.knob }))
			switch {
			case err != nil && r.fallible:
				notes = append(notes, fmt.Sprintf("%s = %s is left out: %v", r.Knob.Name, value, err))
			case err != nil:
				return nil, nil, err
			default:
				variants = append(variants, v)
			}
		}
	}
	if len(s.Heat) == 0 {
		return variants, notes, s.checkMetric(variants)
	}
	a, b := &s.Heat[0], &s.Heat[1]
	for row, y := range b.At(s.steps(HeatSteps)) {
		for column, x := range a.At(s.steps(HeatSteps)) {
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
			v := variant{row: row, column: column}
			first, err := a.Knob.settings(cfg, x)
			if err != nil {
				return nil, nil, err
			}
			second, err := b.Knob.settings(cfg, y)
			if err != nil {
				return nil, nil, err
			}
			v.settings = slices.Concat(first, second)
			var doubts []warn.Warning
			if v.subjects, doubts, err = s.subjects(e, v.settings); err != nil {
				return nil, nil, err
			}
			notes = addDoubts(notes, doubts, row+column == 0)
			variants = append(variants, v)
		}
	}
	return variants, notes, s.checkMetric(variants)
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

// caseOf describes a server of the configuration.
func (s *Study) caseOf(one *subject) *Case {
	p := one.point()
	c := &Case{Name: p.SystemLabel(), System: p.System.Name, Model: p.Model, GPU: p.GPU,
		Rate: p.Workload.MeanRate(), Sessions: p.Workload.Trace == traces.Sessions,
		Seeds: one.seeds(), Requests: traces.Count(p.Workload), Knobs: []*KnobResult{}}
	if bounds, err := boundsOf(p); err == nil {
		c.SLO = p.SLO.String(bounds)
	}
	return c
}

// fill stores the values of a case's variants, given in their order.
func (s *Study) fill(out *Result, c *Case, index int, variants []variant, values []Value) {
	knobs := map[string]*KnobResult{}
	for i := range s.Ranges {
		k := &s.Ranges[i].Knob
		r := &KnobResult{Knob: k.Name, About: k.About, Keys: k.Keys, Factor: k.Factor,
			Base: k.has(s.cases[index].point())}
		knobs[k.Name] = r
		c.Knobs = append(c.Knobs, r)
	}
	if len(s.Heat) > 0 {
		a, b := &s.Heat[0], &s.Heat[1]
		c.Heat = &HeatMap{A: a.Knob.Name, B: b.Knob.Name, FactorA: a.Knob.Factor, FactorB: b.Knob.Factor,
			ValuesA: a.At(s.steps(HeatSteps)), ValuesB: b.At(s.steps(HeatSteps))}
		for range c.Heat.ValuesB {
			c.Heat.Cells = append(c.Heat.Cells, make([]*float64, len(c.Heat.ValuesA)))
		}
	}
	for i := range variants {
		v := &variants[i]
		value := values[i*len(s.cases)+index]
		if v.row >= 0 {
			if !value.none {
				c.Heat.Cells[v.row][v.column] = &value.Value
			}
			continue
		}
		if value.none {
			out.Notes = append(out.Notes, fmt.Sprintf("%s with %s = %s serves no request, so it has no %s",
				c.Name, v.knob, v.value, s.Metric.Name))
			continue
		}
		k := knobs[v.knob]
		k.Points = append(k.Points, changeOf(v.value, value, &c.Base))
	}
	c.Knobs = slices.DeleteFunc(c.Knobs, func(k *KnobResult) bool { return len(k.Points) == 0 })
}

// leastSeeds is the minimum number of seeds for an interval.
const leastSeeds = 3

// confidence is the confidence level of the intervals.
const confidence = 0.95

func changeOf(setting string, v Value, base *Value) Change {
	c := Change{Setting: setting, Value: v, Change: relative(v.Value, base.Value)}
	if n := len(v.Seeds); n < leastSeeds || n != len(base.Seeds) {
		return c
	}
	var changes []float64
	for i := range v.Seeds {
		changes = append(changes, relative(v.Seeds[i], base.Seeds[i]))
	}
	low, high := tInterval(changes)
	c.Low, c.High = &low, &high
	return c
}

// relative returns the relative change between two values; 0 if the base is 0.
func relative(to, from float64) float64 {
	if from == 0 {
		return 0
	}
	return to/from - 1
}

// has returns the knob's value on a server.
func (k *Knob) has(p *config.Point) string {
	if k.Factor {
		return "1"
	}
	v, ok := p.Field(k.Keys[0])
	if !ok {
		return ""
	}
	return strings.Trim(config.Show(v.Interface()), `"`)
}

// Sorted lists the knobs, largest effect first.
func (c *Case) Sorted() []*KnobResult {
	effect := func(k *KnobResult) float64 {
		low, high := 0.0, 0.0
		for _, p := range k.Points {
			low, high = math.Min(low, p.Change), math.Max(high, p.Change)
		}
		return high - low
	}
	knobs := slices.Clone(c.Knobs)
	slices.SortStableFunc(knobs, func(a, b *KnobResult) int {
		return cmp.Compare(effect(b), effect(a))
	})
	return knobs
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
