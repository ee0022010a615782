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
	"github.com/sparseserve/sparseserve/sim"
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

// Answer is the answer to a threshold's question at one value.
type Answer struct {
	Setting string  `json:"setting"`
	Verdict Verdict `json:"verdict"`
	Value   float64 `json:"value"`
	Against float64 `json:"against"` // a bound, or the value without offloading
}

// Crossing is the value at which an answer changes for a case.
type Crossing struct {
	Name     string   `json:"name"`
	Question string   `json:"question"`
	Knob     string   `json:"knob"`
	Keys     []string `json:"keys"`
	// Low and High are the values of the knob between which the answer changes. Values between them
	// were not run. Holds and Fails are the answers at these values; each is nil if no value of the
	// range has that answer.
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
	Holds *Answer  `json:"holds"`
	Fails *Answer  `json:"fails"`
	Own   *Answer  `json:"own,omitempty"` // of the configuration as it is
	Tried []Answer `json:"tried"`
	Text  string   `json:"text"` // the answer in words
}

// crossingWidth is the relative accuracy of each end of a crossing.
const crossingWidth = 0.02

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

// end stores an answer on its side of the crossing.
func (c *Crossing) end(a *Answer, value **float64) {
	switch v, _ := number(a.Setting); a.Verdict {
	case Holds:
		c.Holds, *value = a, &v
	case Fails:
		c.Fails, *value = a, &v
	}
}

// find bisects the range.
func (t *test) find(ctx context.Context) (*Crossing, error) {
	c := &Crossing{Name: t.Name, Question: t.Question, Knob: t.r.Knob.Name, Keys: t.r.Knob.Keys}
	at := func(value string) (Answer, error) {
		settings, err := t.r.Knob.settings(t.cfg, value)
		if err != nil {
			return Answer{}, err
		}
		a, err := t.holds(ctx, t, settings)
		a.Setting = value
		c.Tried = append(c.Tried, a)
		return a, err
	}
	low, high, err := t.sides(at)
	if err != nil {
		return nil, err
	}
	c.end(&low, &c.Low)
	c.end(&high, &c.High)
	c.Text = t.words(c, &low, &high)
	if !t.own {
		return c, nil
	}
	own, err := t.holds(ctx, t, nil)
	if err != nil {
		return nil, err
	}
	c.Own = &own
	c.Text += fmt.Sprintf("; as configured, %s: %s", t.answer(&own), t.compared(&own))
	return c, nil
}

// scanned is the number of range values that are tried, from the lower end, to find a verdict and
// its opposite.
const scanned = 5

// scan tries values from the lower end of the range until two values have opposite verdicts. It
// then returns the values from the last one with the first verdict on.
func (t *test) scan(at func(string) (Answer, error)) (tried []Answer, opposite bool, err error) {
	decided := -1 // the last of the first verdict
	for i, value := range t.r.At(scanned) {
		a, err := at(value)
		if err != nil {
			return nil, false, err
		}
		tried = append(tried, a)
		switch {
		case a.Verdict == Undecided:
		case decided < 0 || a.Verdict == tried[decided].Verdict:
			decided = i
		default:
			return tried[decided:], true, nil
		}
	}
	return tried, false, nil
}

// sides returns the last value of one verdict and the first of its opposite; the range between them
// is undecided. If only one verdict occurs, it is returned with the nearest undecided value, or as
// both ends of the range.
func (t *test) sides(at func(string) (Answer, error)) (low, high Answer, err error) {
	tried, opposite, err := t.scan(at)
	if err != nil {
		return low, high, err
	}
	n := len(tried)
	low, high = tried[0], tried[n-1]
	first, last := low.Verdict, high.Verdict
	if first == last {
		return low, high, nil
	}
	below := func(a Answer) bool { return a.Verdict == first }
	notAbove := func(a Answer) bool { return a.Verdict != last }
	i := 0
	for k := range tried {
		if below(tried[k]) {
			i = k
		}
	}
	low, next, err := t.bisect(at, tried[i], tried[i+1], below)
	if err != nil || !opposite || next.Verdict == last {
		return low, next, err
	}
	if n > 2 {
		next = tried[n-2]
	}
	_, high, err = t.bisect(at, next, high, notAbove)
	return low, high, err
}

// bisect narrows a range whose lower end is below and whose upper end is not.
func (t *test) bisect(at func(string) (Answer, error), low, high Answer,
	below func(Answer) bool) (Answer, Answer, error) {
	for {
		a, _ := number(low.Setting)
		b, _ := number(high.Setting)
		middle := t.r.Knob.round(math.Sqrt(a * b))
		if b <= a*(1+crossingWidth) || middle == low.Setting || middle == high.Setting {
			return low, high, nil
		}
		m, err := at(middle)
		if err != nil {
			return low, high, err
		}
		if below(m) {
			low = m
		} else {
			high = m
		}
	}
}

func (t *Threshold) answer(a *Answer) string {
	switch a.Verdict {
	case Holds:
		return t.Yes
	case Fails:
		return t.No
	}
	return "undecided"
}

// compared formats the metric with and without offloading.
func (t *test) compared(a *Answer) string {
	return fmt.Sprintf("%s %.3g with offloading, %.3g without", t.study.Metric.Label, a.Value,
		a.Against)
}

// words describes the answer from its two sides.
func (t *test) words(c *Crossing, low, high *Answer) string {
	name := t.r.Knob.Name
	at := func(a *Answer) string {
		if !t.r.Knob.Factor {
			return a.Setting
		}
		settings, err := t.r.Knob.settings(t.cfg, a.Setting)
		if err != nil || len(settings) == 0 {
			return "x " + a.Setting
		}
		return "x " + a.Setting + " (" + strings.TrimSpace(config.SettingsLabel(settings)) + ")"
	}
	if low.Verdict == high.Verdict {
		return fmt.Sprintf("%s at %s = %s and at %s: no threshold between", t.answer(low), name,
			low.Setting, high.Setting)
	}
	text := fmt.Sprintf("%s at %s = %s, %s at %s", t.answer(low), name, at(low), t.answer(high),
		at(high))
	from, _ := number(low.Setting)
	to, _ := number(high.Setting)
	if slices.ContainsFunc(c.Tried, func(a Answer) bool {
		v, _ := number(a.Setting)
		return a.Verdict == Undecided && from < v && v < to
	}) {
		text += "; between them it is undecided"
	}
	return text
}

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
	[]sim.Summary, error) {
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
	bounds, err := boundsOf(p)
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

// boundsOf returns the bounds of a server's service level.
func boundsOf(p *config.Point) ([]config.Bound, error) {
	model, err := p.Shard()
	if err != nil {
		return nil, err
	}
	gpu, err := p.Machine()
	if err != nil {
		return nil, err
	}
	iteration, err := hw.ReferenceIteration(gpu, &model)
	return p.SLO.Bounds(iteration.Seconds()), err
}
