package whatif

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// Threshold is a question whose answer changes at one value of a knob.
type Threshold struct {
	Name     string
	Question string
	Yes, No  string // what holds on either side

	knob   string
	within func(*config.Point) (low, high float64) // where it is looked for
	own    bool                                    // also asked of the configuration as it is
	// holds answers the question for a server, with the figures behind the answer.
	holds func(context.Context, *test, []config.Setting) (Answer, error)
}

// Thresholds lists all questions.
func Thresholds() []Threshold {
	return []Threshold{
		{Name: "offload-link", Question: "the link speed from which offloading pays, as a factor of " +
			"the card's",
			Yes: "offloading pays", No: "offloading does not pay", knob: "link", own: true, holds: pays,
			within: func(*config.Point) (float64, float64) { return 0.05, 4 }},
		{Name: "offload-prompt", Question: "the prompt length from which offloading pays, in tokens",
			Yes: "offloading pays", No: "offloading does not pay", knob: "prompt", own: true, holds: pays,
			within: prompts},
		{Name: "dram", Question: "the host memory that the load needs, in GiB",
			Yes: "the service level holds", No: "the service level fails", knob: "system.dram_gib",
			holds:  keepsLevel,
			within: func(p *config.Point) (float64, float64) { return 1, math.Max(p.System.DRAMGiB, 2) }},
		{Name: "budget", Question: "the largest budget that keeps TBT within its bound, in tokens",
			Yes: "TBT is within its bound", No: "TBT is above its bound", knob: "budget", holds: keepsTBT,
			within: budgets},
	}
}

// ThresholdNamed returns a threshold.
func ThresholdNamed(name string) (Threshold, error) {
	var names []string
	for _, t := range Thresholds() {
		if t.Name == name {
			return t, nil
		}
		names = append(names, t.Name)
	}
	return Threshold{}, fmt.Errorf("--threshold %s: no such threshold%s; want %s", name,
		config.DidYouMean(name, names), strings.Join(names, ", "))
}

// prompts returns the range of prompt lengths up to a long prompt for a server, within the model's
// context.
func prompts(p *config.Point) (low, high float64) {
	m, err := hw.LoadModel(p.Model)
	if err != nil { // it was read before
		return 256, 32768
	}
	return 256, math.Min(65536, math.Floor(0.9*float64(m.MaxContext)))
}

// budgets returns the range of budgets. It begins above the sinks and window, where there is a
// choice.
func budgets(p *config.Point) (low, high float64) {
	s := &p.System
	return float64(2 * s.BlockTokens * (s.Selection.SinkBlocks + s.Selection.RecentBlocks + 1)), 32768
}

// test searches for the threshold of one case.
type test struct {
	*Threshold
	study *Study
	index int   // of the case
	r     Range // where
	cfg   *config.Config

	evaluator *Evaluator
}

// prepareThresholds finds the cases of each threshold before anything runs.
func (s *Study) prepareThresholds(e *Evaluator) ([]test, error) {
	cfg := s.base.Variants[0].Config
	var tests []test
	for i := range s.Thresholds {
		t := &s.Thresholds[i]
		knob, err := KnobNamed(t.knob)
		if err != nil {
			return nil, err
		}
		found := false
		for j := range s.cases {
			p := s.cases[j].point()
			if !t.about(p) {
				continue
			}
			found = true
			low, high := t.within(p)
			r := Range{Knob: knob, Low: knob.round(low), High: knob.round(high)}
			if k := slices.IndexFunc(s.Ranges, func(r Range) bool {
				return r.Knob.Name == t.knob &&
					r.Values == nil
			}); k >= 0 {
				r = s.Ranges[k]
			}
			one := test{t, s, j, r, cfg, e}
			for _, value := range []string{r.Low, r.High} { // refused ones are found now
				settings, err := knob.settings(cfg, value)
				if err == nil {
					_, err = s.load(settings, s.Metric.Search())
				}
				if err != nil {
					return nil, fmt.Errorf("--threshold %s: %w", t.Name, err)
				}
			}
			if v, _ := number(r.Low); v <= 0 {
				return nil, fmt.Errorf("--threshold %s: %s from %s: want a range above 0", t.Name,
					knob.Name, r.Low)
			}
			tests = append(tests, one)
		}
		if !found {
			return nil, fmt.Errorf("--threshold %s: no system of the configuration %s", t.Name, t.needs())
		}
		if rates := len(cfg.Rates) * len(cfg.Clients); rates > 1 && t.atRate() {
			return nil, fmt.Errorf("--threshold %s: the configuration has %d loads and is about one; "+
				"choose it, as in --set workload.rate=%s",
				t.Name, rates, text(cfg.Rates[0]))
		}
	}
	return tests, nil
}

// about reports whether the question makes sense for a server.
func (t *Threshold) about(p *config.Point) bool {
	if t.Name == "budget" {
		return p.System.Sparse()
	}
	return p.System.Offload.On
}

func (t *Threshold) needs() string {
	if t.Name == "budget" {
		return "has sparse attention"
	}
	return "offloads"
}

// atRate reports whether the question is answered by runs at the configured rate.
func (t *Threshold) atRate() bool { return t.Name == "budget" || t.Name == "dram" }

// pays reports whether the metric is better with offloading than without.
func pays(ctx context.Context, t *test, settings []config.Setting) (a Answer, err error) {
	s := t.study
	with, _, err := s.subjects(t.evaluator, settings)
	if err != nil {
		return a, err
	}
	without, _, err := s.subjects(t.evaluator,
		append(slices.Clone(settings), config.NewSetting("offload.on", "false")))
	if err != nil {
		return a, err
	}
	values, err := t.evaluator.evaluate(ctx, &s.Metric, s.goodput,
		[]subject{with[t.index], without[t.index]})
	if err != nil {
		return a, err
	}
	return Answer{Verdict: s.Metric.better(&values[0], &values[1]), Value: values[0].Value,
		Against: values[1].Value}, nil
}

// runs makes the runs of a variant at the configuration's rate.
func (t *test) runs(ctx context.Context, settings []config.Setting) (*config.Point,
	[]metrics.Summary, error) {
	sweep, err := t.study.load(settings, false)
	if err != nil {
		return nil, nil, err
	}
	all, err := t.evaluator.subjects(sweep, false)
	if err != nil {
		return nil, nil, err
	}
	one := all[t.index]
	sums, err := t.evaluator.runs(ctx, []subject{one})
	if err != nil {
		return nil, nil, err
	}
	return one.point(), sums[0], nil
}

// keepsLevel reports whether the runs of all seeds, or of none, meet the service level. The answer
// contains the share of requests served and the required share.
func keepsLevel(ctx context.Context, t *test, settings []config.Setting) (a Answer, err error) {
	p, sums, err := t.runs(ctx, settings)
	if err != nil {
		return a, err
	}
	var served []float64
	var kept []float64 // 1 or -1
	for i := range sums {
		served = append(served, 1-sums[i].RejectedShare())
		if met, _ := sums[i].MetSLO(); met {
			kept = append(kept, 1)
		} else {
			kept = append(kept, -1)
		}
	}
	a.Verdict = positive(slices.Min(kept), slices.Max(kept))
	a.Value, a.Against = stat.Mean(served, nil), 1-p.SLO.MissShare
	return a, nil
}

// keepsTBT reports whether the bound on TBT holds, by the interval over seeds. Figures are in
// seconds.
func keepsTBT(ctx context.Context, t *test, settings []config.Setting) (a Answer, err error) {
	p, sums, err := t.runs(ctx, settings)
	if err != nil {
		return a, err
	}
	bounds, err := p.Bounds()
	if err != nil {
		return a, err
	}
	i := slices.IndexFunc(bounds, func(b config.Bound) bool { return b.Name == "tbt" })
	if i < 0 {
		return a, fmt.Errorf("--threshold %s: the service level has no bound on TBT; set slo.tbt_s",
			t.Name)
	}
	var values []float64
	var spare []span
	for j := range sums {
		v := bounds[i].Value(&sums[j])
		values = append(values, v)
		left := math.Nextafter(bounds[i].Limit, math.Inf(1)) - v // the limit itself is kept
		spare = append(spare, span{left, left})
	}
	a.Value, a.Against = stat.Mean(values, nil), bounds[i].Limit
	a.Verdict = positive(interval(spare))
	return a, nil
}
