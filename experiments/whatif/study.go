package whatif

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// Steps of a range: its ends for a tornado, more for a heat map.
const (
	TornadoSteps = 2
	HeatSteps    = 5
)

// Study is a what-if of a configuration, as flags ask for it.
type Study struct {
	Config     string   // file or built-in experiment; the default one when empty
	Set        []string // KEY=VALUE
	Vary       []string // KNOB=VALUES; without it, Heat and Thresholds: Defaults
	Heat       string   // A,B
	Thresholds []string
	Metric     string
	Steps      int // values of a range; 0 = TornadoSteps, HeatSteps

	metric     Metric
	ranges     []Range // of a tornado, a knob each
	heat       []Range // two, or none
	thresholds []Threshold

	hashes   *config.Hasher
	base     *config.Sweep
	cfg      []config.Point // of base
	cases    []subject      // of the configuration itself
	variants []variant
	tests    []test
	notes    []string
	goodput  config.GoodputSearch
	// first marks a first look: if the configuration sets no key of [goodput], goodput and thresholds
	// use one seed unless seeds are set, and goodput is searched within firstWidth, because both need
	// many runs.
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

func (v *variant) settings(cfg []config.Point) (all []config.Setting, err error) {
	for i, k := range v.knobs {
		settings, err := k.settings(cfg, v.values[i])
		if err != nil {
			return nil, err
		}
		all = append(all, settings...)
	}
	return all, nil
}

// Check reads the configuration and all variants before anything runs. It returns an error if the
// study cannot run. Refused variants of default knobs are omitted with a note.
func (s *Study) Check(ctx context.Context) (err error) {
	if err := s.parse(); err != nil {
		return err
	}
	s.hashes = config.NewHasher()
	if s.base, err = s.load(nil, s.metric.Search()); err != nil {
		return err
	}
	s.cfg, s.goodput = s.base.Variants[0], s.base.Goodput
	if err := s.usual(); err != nil {
		return err
	}
	all := s.wanted()
	if n := len(all); n > config.MostPoints {
		return fmt.Errorf("--vary, --heat: %d values, a what-if has at most %d; take out values, or "+
			"give fewer --steps", n, config.MostPoints)
	}
	s.first = !s.goodput.Given && (s.metric.Search() || len(s.thresholds) > 0)
	if s.first {
		s.goodput.Coarse, s.goodput.Width = true, firstWidth
	}
	if s.cases, err = s.servers(ctx, s.base, s.metric.Search()); err != nil {
		return err
	}
	if err := s.checkLoad(); err != nil {
		return err
	}
	for _, v := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		first := !slices.ContainsFunc(s.variants,
			func(o variant) bool { return slices.Equal(o.knobs, v.knobs) })
		var doubts []warn.Warning
		settings, err := v.settings(s.cfg)
		if err == nil {
			v.subjects, doubts, err = s.subjects(ctx, settings)
		}
		for _, w := range doubts { // of unused keys the others of its kind have the same
			if first || w.Kind == warn.OtherCard && !slices.Contains(s.notes, w.Text) {
				s.notes = append(s.notes, w.Text)
			}
		}
		switch {
		case err == nil:
			s.variants = append(s.variants, v)
		case v.fallible:
			s.notes = append(s.notes, fmt.Sprintf("%s = %s is left out: %v", v.knobs[0].Name, v.values[0],
				err))
		default:
			return err
		}
	}
	if err := s.checkMetric(); err != nil {
		return err
	}
	s.tests, err = s.findTests()
	return err
}

// checkLoad refuses servers without goodput, and a metric of runs without one load.
func (s *Study) checkLoad() error {
	if s.metric.Search() {
		for i := range s.cases {
			if err := capacity.CheckRefused(&s.cases[i].Point, s.cases[i].Seeds[0]); err != nil {
				return err
			}
		}
		return nil
	}
	if s.cfg[0].NoRate {
		return fmt.Errorf("--metric %s: workload.rate: not set, and %[1]s needs one load; "+
			"set it, as in --set workload.rate=1", s.metric.Name)
	}
	return s.oneLoad("--metric " + s.metric.Name)
}

// oneLoad refuses a configuration of several loads for a flag that needs one.
func (s *Study) oneLoad(flag string) error {
	loads := map[[2]float64]bool{}
	for i := range s.cfg {
		w := &s.cfg[i].Workload
		loads[[2]float64{w.Rate, float64(w.Concurrency)}] = true
	}
	if n := len(loads); n > 1 {
		return fmt.Errorf("%s: the configuration has %d loads and is about one; choose it, as in "+
			"--set workload.rate=%s", flag, n, text(s.cfg[0].Workload.Rate))
	}
	return nil
}

// wanted lists the variants of the tornado and of the heat map.
func (s *Study) wanted() (all []variant) {
	for i := range s.ranges {
		r := &s.ranges[i]
		for _, value := range r.At(cmp.Or(s.Steps, TornadoSteps)) {
			all = append(all, variant{knobs: []*Knob{&r.Knob}, values: []string{value},
				fallible: r.fallible, row: -1})
		}
	}
	if len(s.heat) == 0 {
		return all
	}
	a, b, steps := &s.heat[0], &s.heat[1], cmp.Or(s.Steps, HeatSteps)
	for row, y := range b.At(steps) {
		for column, x := range a.At(steps) {
			all = append(all, variant{knobs: []*Knob{&a.Knob, &b.Knob}, values: []string{x, y}, row: row,
				column: column})
		}
	}
	return all
}

// Runs lists the runs of the varied configuration; call it after Check.
func (s *Study) Runs() []config.Point { return s.cfg }

// Paths lists the files of the configuration, and its values that may be a file; call it after
// Check.
func (s *Study) Paths() []string { return s.base.Paths() }

func (s *Study) load(settings []config.Setting, search bool) (*config.Sweep, error) {
	return config.LoadVaried(s.Config, s.Set, [][]config.Setting{settings}, search)
}

// subjects returns the servers of a variant, one per server of the configuration. doubts are
// warnings about keys that the variant sets, unless the configuration has them already.
func (s *Study) subjects(ctx context.Context, settings []config.Setting) (all []subject,
	doubts []warn.Warning, err error) {
	sweep, err := s.load(settings, s.metric.Search())
	if err != nil {
		return nil, nil, err
	}
	known := warn.Texts(s.cfg[0].Warnings)
	doubts = slices.DeleteFunc(slices.Clone(sweep.Variants[0][0].Warnings),
		func(w warn.Warning) bool { return slices.Contains(known, w.Text) })
	all, err = s.servers(ctx, sweep, s.metric.Search())
	if err == nil && len(all) != len(s.cases) {
		err = fmt.Errorf("--vary: %s = %s makes %d servers of %d; a value changes servers and adds none",
			settings[0].Key, config.Show(settings[0].Value), len(all), len(s.cases))
	}
	return all, doubts, err
}

// servers lists the servers of one variant of the configuration, with search without a rate.
func (s *Study) servers(ctx context.Context, sweep *config.Sweep, search bool) ([]subject, error) {
	list := capacity.UnderLoad
	if search {
		list = capacity.Candidates
	}
	candidates, err := list(ctx, sweep)
	all := make([]subject, len(candidates))
	for i, c := range candidates {
		switch {
		case sweep.SeedsGiven:
		case s.first:
			c.Seeds = []uint64{1}
		default:
			c.Seeds = []uint64{1, 2, 3} // enough for an interval
		}
		all[i].Candidate = c
		if err == nil {
			all[i].hash, err = s.hashes.Hash(&c.Point)
		}
	}
	return all, err
}

// Do runs the study. Every run goes through the planner's store, so no run is made twice.
func (s *Study) Do(ctx context.Context, planner *capacity.Planner) (*Result, error) {
	if s.base == nil {
		if err := s.Check(ctx); err != nil {
			return nil, err
		}
	}
	e := &evaluator{planner, map[string]Value{}, map[string][]metrics.Summary{}}
	out := &Result{Format: 1, Name: s.base.Name, Metric: s.metric.Name, Label: s.metric.Label,
		Higher: s.metric.Higher, Notes: slices.Concat([]string{}, s.notes), config: s.cfg}
	if s.metric.Search() {
		out.Label = "goodput (" + capacity.RateUnit(&s.cases[0].Point.Workload) + ")"
		out.Notes = append(out.Notes, fmt.Sprintf("goodput is known within goodput.width = %g %%; a "+
			"change of less is none", 100*s.goodput.Width))
	}
	if s.first {
		out.Notes = append(out.Notes, "a first look, with one seed and no intervals; --set "+
			"goodput.coarse=false takes three seeds, within 2 %")
	}
	values, err := s.values(ctx, e)
	if err != nil {
		return nil, err
	}
	for i := range s.cases {
		c := s.caseOf(&s.cases[i])
		if c.Base = values[i]; c.Base.none {
			return nil, fmt.Errorf("%s serves no request, so it has no %s to change", c.Name,
				s.metric.Name)
		}
		s.fill(out, c, i, values[len(s.cases):])
		out.Cases = append(out.Cases, c)
	}
	for i := range s.tests {
		t := &s.tests[i]
		crossing, err := t.find(func(value string) (Answer, error) { return t.ask(ctx, e, value) })
		if err != nil {
			return nil, err
		}
		c := out.Cases[t.index]
		c.Thresholds = append(c.Thresholds, crossing)
	}
	return out, nil
}

// values evaluates the cases, and then the variants of each, in their order.
func (s *Study) values(ctx context.Context, e *evaluator) ([]Value, error) {
	values, err := e.evaluate(ctx, &s.metric, s.goodput, s.cases)
	if err != nil {
		return nil, err
	}
	var all []subject
	near := s.goodput
	for i := range s.variants {
		for j, one := range s.variants[i].subjects {
			if base := values[j].Value; s.first && base > 0 {
				near.Near, one.Start = true, base
			}
			all = append(all, one)
		}
	}
	more, err := e.evaluate(ctx, &s.metric, near, all)
	return append(values, more...), err
}
