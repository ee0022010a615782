package whatif

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// Threshold is a question whose answer changes at one value of a knob.
type Threshold struct {
	Name     string
	Question string
	Yes, No  string // what holds on either side

	knob   string
	of     func(*sim.Spec) bool                    // systems that it is about
	needs  string                                  // which, in words
	within func(*config.Point) (low, high float64) // where it is looked for
	own    bool                                    // also asked of the configuration as it is
	// spare is the room that one run at the configuration's rate leaves, above 0 if it holds, with the
	// figures behind it. Without it, the answer compares the metric with offloading to that without.
	spare func(*config.Point, *metrics.Summary) (value, against, spare float64, err error)
}

func offloads(s *sim.Spec) bool { return s.Offload.On }

// Thresholds lists all questions.
func Thresholds() []Threshold {
	const pays, not, offload = "offloading pays", "offloading does not pay", "offloads"
	return []Threshold{
		{Name: "offload-link", Question: "the link speed from which offloading pays, as a factor of " +
			"the card's",
			Yes: pays, No: not, knob: "link", own: true, of: offloads, needs: offload,
			within: func(*config.Point) (float64, float64) { return 0.05, 4 }},
		{Name: "offload-prompt", Question: "the prompt length from which offloading pays, in tokens",
			Yes: pays, No: not, knob: "prompt", own: true, of: offloads, needs: offload, within: prompts},
		{Name: "dram", Question: "the host memory that the load needs, in GiB",
			Yes: "the service level holds", No: "the service level fails", knob: "system.dram_gib",
			of: offloads, needs: offload, spare: ofLevel,
			within: func(p *config.Point) (float64, float64) { return 1, math.Max(p.System.DRAMGiB, 2) }},
		{Name: "budget", Question: "the largest budget that keeps TBT within its bound, in tokens",
			Yes: "TBT is within its bound", No: "TBT is above its bound", knob: "budget",
			of: (*sim.Spec).Sparse, needs: "has sparse attention", spare: ofTBT, within: budgets},
	}
}

// ThresholdNamed returns a threshold.
func ThresholdNamed(name string) (Threshold, error) {
	return named("threshold", name, Thresholds(), func(t *Threshold) string { return t.Name })
}

// prompts returns the range of prompt lengths up to a long prompt for a server, within the model's
// context.
func prompts(p *config.Point) (low, high float64) {
	m, err := llm.Load(p.Model)
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
	index int     // of the case
	r     Range   // where
	width float64 // relative accuracy
}

// findTests finds the cases of each threshold before anything runs.
func (s *Study) findTests() (tests []test, err error) {
	width := fineWidth
	if s.goodput.Coarse {
		width = coarseWidth
	}
	for i := range s.thresholds {
		t := &s.thresholds[i]
		fault := func(err error) error { return fmt.Errorf("--threshold %s: %w", t.Name, err) }
		knob, err := KnobNamed(t.knob)
		if err != nil {
			return nil, err
		}
		before := len(tests)
		for j := range s.cases {
			p := &s.cases[j].Point
			if !t.of(&p.System) {
				continue
			}
			low, high := t.within(p)
			r := Range{Knob: knob, Low: knob.round(low), High: knob.round(high)}
			if k := rangeOf(s.ranges, t.knob); k >= 0 && s.ranges[k].Values == nil {
				r = s.ranges[k]
			}
			for _, value := range []string{r.Low, r.High} { // refused ones are found now
				settings, err := knob.settings(s.cfg, value)
				if err == nil {
					_, err = s.load(settings, s.metric.Search())
				}
				if err != nil {
					return nil, fault(err)
				}
			}
			if v, _ := number(r.Low); v <= 0 {
				return nil, fault(fmt.Errorf("%s from %s: want a range above 0", knob.Name, r.Low))
			}
			tests = append(tests, test{t, s, j, r, width})
		}
		if len(tests) == before {
			return nil, fault(fmt.Errorf("no system of the configuration %s", t.needs))
		}
		if t.spare == nil {
			continue
		}
		if err := s.oneLoad("--threshold " + t.Name); err != nil {
			return nil, err
		}
	}
	return tests, nil
}

// ask answers the question with a value of the knob; for the configuration as it is if the value is
// empty.
func (t *test) ask(ctx context.Context, e *evaluator, value string) (a Answer, err error) {
	s := t.study
	var settings []config.Setting
	if value != "" {
		if settings, err = t.r.Knob.settings(s.cfg, value); err != nil {
			return a, err
		}
	}
	a.Setting = value
	if t.spare != nil {
		err := t.bySpare(ctx, e, settings, &a)
		return a, err
	}
	with, _, err := s.subjects(ctx, settings)
	if err != nil {
		return a, err
	}
	without, _, err := s.subjects(ctx, append(slices.Clone(settings),
		config.NewSetting("offload.on", "false")))
	if err != nil {
		return a, err
	}
	found, err := e.evaluate(ctx, &s.metric, s.goodput, []subject{with[t.index], without[t.index]})
	if err != nil {
		return a, err
	}
	a.Verdict, a.Value, a.Against = s.metric.better(&found[0], &found[1]), found[0].Value,
		found[1].Value
	return a, nil
}

// bySpare answers by runs at the configuration's rate.
func (t *test) bySpare(ctx context.Context, e *evaluator, settings []config.Setting,
	a *Answer) error {
	sweep, err := t.study.load(settings, false)
	if err != nil {
		return err
	}
	all, err := t.study.servers(ctx, sweep, false)
	if err != nil {
		return err
	}
	one := all[t.index]
	sums, err := e.runs(ctx, []subject{one})
	if err != nil {
		return err
	}
	var values []float64
	var spare []span
	for i := range sums[0] {
		value, against, left, err := t.spare(&one.Point, &sums[0][i])
		if err != nil {
			return fmt.Errorf("--threshold %s: %w", t.Name, err)
		}
		values, spare, a.Against = append(values, value), append(spare, span{left, left}), against
	}
	a.Value, a.Verdict = stat.Mean(values, nil), positive(interval(spare))
	return nil
}

// ofLevel has infinite room in a run that meets the service level. The figures are the share of
// requests served and the required share.
func ofLevel(p *config.Point, s *metrics.Summary) (value, against, spare float64, err error) {
	sign := -1
	if met, _ := s.MetSLO(); met {
		sign = 1
	}
	return 1 - s.RejectedShare(), 1 - p.SLO.MissShare, math.Inf(sign), nil
}

// ofTBT is the room that TBT leaves to its bound. The figures are in seconds.
func ofTBT(p *config.Point, s *metrics.Summary) (value, against, spare float64, err error) {
	bounds, err := p.Bounds()
	if err != nil {
		return 0, 0, 0, err
	}
	i := slices.IndexFunc(bounds, func(b config.Bound) bool { return b.Name == "tbt" })
	if i < 0 {
		return 0, 0, 0, fmt.Errorf("the service level has no bound on TBT; set slo.tbt_s")
	}
	limit := bounds[i].Limit
	value = bounds[i].Value(s)
	return value, limit, math.Nextafter(limit, math.Inf(1)) - value, nil // the limit itself is kept
}
