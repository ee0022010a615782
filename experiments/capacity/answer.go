package capacity

import (
	"cmp"
	"slices"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/traces"
)

// Purchase is what to buy for a load.
type Purchase struct {
	Question Question `json:"question"`
	Load     string   `json:"load"`      // in words
	LoadOf   float64  `json:"load_of"`   // requests/s, sessions/s, clients, times a trace's speed
	LoadUnit string   `json:"load_unit"` // unit of load_of
	SLO      string   `json:"slo"`       // in words
	Requests int      `json:"requests"`  // of a run of one replica
	Seeds    []uint64 `json:"seeds"`

	Prices     string `json:"prices"` // name of the table
	PricesFile string `json:"prices_file"`

	// Choice is the cheapest candidate that meets the level with the margin, which is the one to buy;
	// nil if none does. Nearest is then the candidate with the smallest miss.
	Choice  *Choice `json:"choice"`
	Nearest *Choice `json:"nearest_miss"`
	// Bare is the cheapest candidate that meets the level as asked for, without headroom, spare
	// replicas or a prediction error.
	Bare    *Bare    `json:"cheapest_without_margin"`
	Limits  []Limit  `json:"planned_limits"` // of the choice
	Serve   string   `json:"serve"`          // the engine's command for a replica, if any
	NoServe string   `json:"serve_why"`      // why not
	Lacks   string   `json:"serve_lacks"`    // what the command does not express
	Proof   Evidence `json:"evidence"`
	// AtPrices is the hourly cost of the choice at the lowest and highest price of its card.
	AtPrices [2]PricedAt `json:"usd_per_hour_at"`

	// Steps are the step sizes in tokens that were tried for the choice, if the configuration sets
	// none.
	Steps []int `json:"step_tokens_tried,omitempty"`

	Candidates []Choice       `json:"candidates"` // the cheapest first
	Runs       int            `json:"runs"`
	Warnings   []warn.Warning `json:"warnings"`

	point   *config.Point // of the choice, under its load
	options []*option
}

// A limit jumps if it is used by less than jumpFrom and missed by more than jumpTo within
// jumpWithin more load.
const jumpFrom, jumpTo, jumpWithin = 0.5, 1.5, 0.2

// PricedAt is the cost at another price.
type PricedAt struct {
	Price      Price   `json:"price"`
	USDPerHour float64 `json:"usd_per_hour"`
}

// Bare is a candidate without a margin.
type Bare struct {
	Name       string  `json:"name"`
	GPU        string  `json:"gpu"`
	Replicas   int     `json:"replicas"`
	GPUs       int     `json:"gpus"`
	USDPerHour float64 `json:"usd_per_hour"`
	Limits     []Share `json:"limits"` // the nearest first
}

// answer summarizes the search.
func (f *Offers) answer() (*Purchase, error) {
	s, prices, options := f.sweep, f.prices, f.options
	a := &Purchase{Prices: s.Plan.Prices, PricesFile: prices.File, Question: f.question,
		options: options, Warnings: []warn.Warning{}}
	best := ranked(options)
	chosen := best
	if len(best) == 0 {
		chosen = byMiss(options)
	}
	listed := slices.Clone(chosen)
	for _, o := range options {
		if !slices.Contains(listed, o) {
			listed = append(listed, o)
		}
	}
	for _, o := range listed {
		c := o.choice()
		a.Candidates = append(a.Candidates, c)
		a.Runs += c.Runs
	}
	for _, o := range f.short {
		c := o.choice()
		c.Outcome, c.Reason = TooShort, o.traffic.String()
		a.Candidates = append(a.Candidates, c)
	}
	for _, u := range s.Unfit {
		a.Candidates = append(a.Candidates, Choice{Name: u.System + config.SettingsLabel(u.Settings),
			System: u.System, Axes: config.SettingsMap(u.Settings), Outcome: TooLarge, Reason: u.Reason})
	}
	if b := f.bare; b != nil {
		a.Bare = &Bare{b.Label(), b.Point.GPU, b.replicas(), b.replicas() * b.gpus, b.usd(),
			nearestFirst(b.found.shares())}
	}
	o := chosen[0]
	if len(best) > 0 {
		a.Choice = &a.Candidates[0]
	} else {
		a.Nearest = &a.Candidates[0]
	}
	return a, a.describe(o, prices)
}

// describe fills in the load, how to run the chosen option and how accurate the prediction is.
func (a *Purchase) describe(o *option, prices *Prices) (err error) {
	w := &o.Point.Workload
	a.Load, a.SLO, a.Seeds = a.Question.Load, a.Question.SLO, o.Seeds
	if a.LoadOf, a.LoadUnit = loadOf(w); a.LoadUnit == loadRate {
		a.LoadUnit = RateUnit(w)
	}

	replicas, requests := 1, 0
	if o.found != nil {
		replicas, requests = o.replicas(), o.found.work.Requests
	}
	if a.Limits, err = o.limits(); err != nil {
		return err
	}
	for _, other := range a.options {
		n := other.Point.System.MaxTokens
		if other.machine == o.machine && !slices.Contains(a.Steps, n) {
			a.Steps = append(a.Steps, n)
		}
	}
	slices.Sort(a.Steps)
	point := withLoad(o.Point, replicas, o.load, requests)
	point.Seed = o.Seeds[0]
	point.Name = config.PointName(&point)
	a.point, a.Requests = &point, traces.Count(point.Workload)
	if a.Serve, a.NoServe, err = ServeCommand(&point); err != nil {
		return err
	}
	if a.Serve != "" {
		a.Lacks = ServeLacks(&point)
	}
	if a.Proof, err = evidenceOf(&point); err != nil {
		return err
	}
	for i, table := range []string{"low", "high"} {
		p, err := prices.Of(table, o.Point.GPU)
		if err != nil {
			return err
		}
		a.AtPrices[i] = PricedAt{p, float64(replicas*o.gpus) * p.USDPerHour}
	}
	a.warn(o)
	return nil
}

// warn adds the caveats of the answer.
func (a *Purchase) warn(o *option) {
	add := func(kind warn.Kind, format string, args ...any) {
		a.Warnings = append(a.Warnings, warn.New(kind, format, args...))
	}
	r := o.last()
	if r == nil || len(r.sums) == 0 {
		return
	}
	if o.traffic.over() > 0 {
		add(warn.Traffic, "%s", o.traffic.String())
	}
	sum := &r.sums[0]
	if n := sum.Requests / r.replicas; n < leastRequests {
		advice := "raise workload.requests"
		if w := &a.point.Workload; w.FromFile() && (w.Requests == 0 || sum.Requests < w.Requests) {
			advice = "the trace has no more; take a longer one"
		}
		add(warn.NoisyTail, "a replica serves %d requests of a run; from %d on P99s are steady: %s", n,
			leastRequests, advice)
	}
	if text := shortRun(&a.point.Workload, sum.Requests, sum.E2E.Mean); text != "" {
		add(warn.ShortRun, "%s", text)
	} else if n := steadyAt(&a.point.Workload, sum.E2E.Mean); n > sum.Requests {
		add(warn.ShortRun, "the trace has %d requests; most of the run is its beginning and end: from "+
			"%d on it would not be", sum.Requests, n)
	}
	if c := a.Choice; c != nil && c.Beyond != nil {
		used := slices.IndexFunc(c.Planned, func(s Share) bool { return s.Name == c.Beyond.Name })
		near := c.Fails < o.target*(1+jumpWithin)
		if near && used >= 0 && c.Planned[used].Of < jumpFrom && c.Beyond.Of > jumpTo {
			why := ""
			if c.Beyond.Name == "tbt" {
				why = ": then more gaps have a step with a long prefill than the percentile leaves out"
			}
			add(warn.Jump, "%s jumps from %.0f %% of its planned limit to %.0f %% as the "+
				"load grows from %.3g to %.3g%s", c.Beyond.Name, 100*c.Planned[used].Of,
				100*c.Beyond.Of, o.target,
				c.Fails, why)
		}
	}
	if len(a.Seeds) < leastSeeds {
		add(warn.FewSeeds, "%d of at least %d seeds, so the part of chance is not known; "+
			"set seed = [1, 2, 3]", len(a.Seeds), leastSeeds)
	}
	a.Warnings = append(a.Warnings, sum.Warnings...)
}

// byMiss lists options that do not meet the level, smallest miss first. At equal misses the cheaper
// option goes first.
func byMiss(options []*option) []*option {
	missing := slices.DeleteFunc(slices.Clone(options),
		func(o *option) bool { return o.last() == nil })
	slices.SortStableFunc(missing, func(x, y *option) int {
		return cmp.Or(cmp.Compare(x.last().worst().Of, y.last().worst().Of),
			cmp.Compare(x.replica, y.replica))
	})
	return missing
}

// last returns the run that describes an option: all replicas under the load, or its miss.
func (o *option) last() *attempt {
	if o.expected != nil {
		return o.expected
	}
	if n := len(o.runs); n > 0 && o.runs[n-1].stage == stageMiss {
		return o.runs[n-1]
	}
	return nil
}
