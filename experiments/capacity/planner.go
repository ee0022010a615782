package capacity

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/sparseserve/sparseserve/experiments/bracket"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/traces"
)

// GoodputConfidence is the confidence level of goodput intervals.
const GoodputConfidence = 0.95

// Goodput is the largest sustained rate of a candidate: the largest tried rate below every rate
// that fails. A rate is sustained if the run meets the bounds of the service level in the mean over
// seeds, rejections stay within the permitted share, and the queue grows without end in less than
// half of the runs.
type Goodput struct {
	Name     string         `json:"name"`
	Asked    string         `json:"asked,omitempty"` // what all candidates serve, in words
	System   string         `json:"system"`
	Model    string         `json:"model"`
	GPU      string         `json:"gpu"`
	Axes     map[string]any `json:"axes"`
	Seeds    []uint64       `json:"seeds"`
	Requests int            `json:"requests"` // a run; of sessions, the longest

	Goodput float64 `json:"goodput"`
	Unit    string  `json:"unit"` // of rates: requests/s or sessions/s
	// Low and High are the ends of Student's t interval over each seed's own
	// goodput; nil when there are fewer than three seeds.
	Low          *float64  `json:"low"`
	High         *float64  `json:"high"`
	Confidence   float64   `json:"confidence"`
	SeedGoodputs []float64 `json:"seed_goodputs"` // in the order of Seeds
	// SeedBrackets are, for each seed, the largest rate that holds and the smallest that fails.
	SeedBrackets [][2]float64 `json:"-"`

	// LimitedBy names what fails at the smallest failing rate: bounds by their names, requests (too
	// many missed a bound), rejected (too many were), queue (grows without end) or several; empty if
	// no rate failed.
	LimitedBy string `json:"limited_by"`

	SLO string `json:"slo"` // in words
	// Means over seeds at the goodput, or at the smallest rate tried when that
	// is 0.
	Bounds        []Bounded `json:"bounds"`
	RejectedShare float64   `json:"rejected_share"` // of the requests
	// rejected or without a bound, with slo.rule = "requests"
	MissedShare    float64 `json:"missed_share"`
	ThroughputTokS float64 `json:"throughput_tok_s"`

	Runs     int            `json:"runs"`
	Warnings []warn.Warning `json:"warnings"`

	search *search
}

// Bounded is a bound of the service level and the value that a run reached.
type Bounded struct {
	config.Bound
	ValueS float64 `json:"value_s"`
}

// Planner searches for goodput. Every run goes through the store, so no run is made twice.
type Planner struct {
	Store   *run.Store
	Run     run.Runner
	Workers int // runs at a time; 0 = one a core
	// Shared is set if several processes search for one answer: each process searches for candidates
	// that no other process has claimed, and takes the others' runs from the store.
	Shared *run.Shared
	// Planned and Finished count runs (candidates for a purchase) for a progress bar. Goroutines call
	// them concurrently; they may be nil. A search plans its runs as it goes.
	Planned  func(n int)
	Finished func()
	// Say receives progress messages of a purchase. It may be nil.
	Say func(text string)

	slots chan struct{}
}

// Do searches for the goodput of each candidate and returns the goodputs found, in the order of
// candidates.
func (p *Planner) Do(ctx context.Context, spec config.GoodputSearch, candidates []Candidate) (
	found []Goodput, err error) {
	p.start()
	all := make([]*Goodput, len(candidates))
	of := make([]*Candidate, len(candidates))
	for i := range candidates {
		of[i] = &candidates[i]
	}
	err = p.each(ctx, of, func(ctx context.Context, i int) (err error) {
		all[i], err = p.candidate(ctx, spec, of[i])
		return err
	})
	for _, g := range all {
		if g != nil {
			found = append(found, *g)
		}
	}
	return found, err
}

// Runs returns the results of points. It makes the runs that are not in the store.
func (p *Planner) Runs(ctx context.Context, points []config.Point) ([]run.Result, error) {
	p.silence()
	return p.Store.Do(ctx, run.Grid{Run: p.Run, Workers: p.Workers,
		Missing: func(missing []config.Point) { p.Planned(len(missing)) },
		Made:    func(run.Result) { p.Finished() }}, points)
}

// start prepares the planner to run.
func (p *Planner) start() {
	workers := p.Workers
	if workers < 1 {
		workers = runtime.GOMAXPROCS(0)
	}
	p.slots = make(chan struct{}, workers)
	p.silence()
}

// silence lets calls without a listener do nothing.
func (p *Planner) silence() {
	if p.Planned == nil {
		p.Planned = func(int) {}
	}
	if p.Finished == nil {
		p.Finished = func() {}
	}
	if p.Say == nil {
		p.Say = func(string) {}
	}
}

// each calls do for candidates in parallel. An error names its candidate.
func (p *Planner) each(ctx context.Context, candidates []*Candidate,
	do func(context.Context, int) error) error {
	named := func(ctx context.Context, i int) error {
		if err := do(ctx, i); err != nil {
			return fmt.Errorf("%s: %w", candidates[i].Label(), err)
		}
		return nil
	}
	group, inner := errgroup.WithContext(ctx)
	if p.Shared != nil {
		hashes := make([]string, len(candidates))
		for i, c := range candidates {
			var err error
			if hashes[i], err = p.Store.Hash(&c.Point); err != nil {
				return err
			}
		}
		group.Go(func() error { return p.Store.Each(inner, *p.Shared, hashes, named) })
	} else {
		group.SetLimit(cap(p.slots))
		for i := range candidates {
			group.Go(func() error {
				if err := inner.Err(); err != nil {
					return err
				}
				return named(inner, i)
			})
		}
	}
	err := group.Wait()
	if cause := ctx.Err(); cause != nil && err != nil {
		return cause
	}
	return err
}

// candidate searches for the goodput of one candidate.
func (p *Planner) candidate(ctx context.Context, spec config.GoodputSearch,
	c *Candidate) (*Goodput, error) {
	slo, err := limitsOf(&c.Point)
	if err != nil {
		return nil, err
	}
	spec.Start = c.Start
	first := c.Point.Workload
	first.Rate = spec.Start
	if err := needsTooMany(&first, "goodput.start"); err != nil {
		return nil, err
	}
	spec.Max = mostLoad(&first, spec.Start, spec.Max)
	s := &search{spec: spec, seeds: c.Seeds, unit: RateUnit(&c.Point.Workload)}
	s.probe = func(ctx context.Context, stage string, rate float64, seeds []uint64) (*attempt, error) {
		w := c.Point.Workload
		w.Rate = rate
		try := func(requests int) (*attempt, error) {
			w.Requests = requests
			p.Planned(len(seeds))
			a := &attempt{stage: stage, load: rate, slo: slo}
			err := p.try(ctx, a, c, seeds, func(at *config.Point) { at.Workload = w })
			for range a.trials {
				p.Finished()
			}
			return a, err
		}
		requests := min(max(w.Requests, sessionRequests(&w)), mostRequests)
		if s.unit != loadSessions {
			return try(requests)
		}
		return lengthened(requests, try)
	}
	if err := s.run(ctx); err != nil {
		return nil, err
	}
	return s.goodput(c), nil
}

// goodput sums the search up.
func (s *search) goodput(c *Candidate) *Goodput {
	low, high := bracket.Ends(s.outcomes())
	g := &Goodput{
		Name: c.Label(), System: c.Point.System.Name, Model: c.Point.Model, GPU: c.Point.GPU,
		Axes: config.SettingsMap(c.Settings), Seeds: s.seeds, Requests: traces.Count(c.Point.Workload),
		Goodput: low, Confidence: GoodputConfidence,
		Warnings: []warn.Warning{}, search: s, Unit: s.unit,
	}
	for _, a := range s.shared {
		g.Runs += len(a.trials)
	}
	for _, seed := range s.seeds {
		own, fails := bracket.Ends(s.seedOutcomes(seed, s.own[seed]))
		g.SeedGoodputs = append(g.SeedGoodputs, own)
		g.SeedBrackets = append(g.SeedBrackets, [2]float64{own, fails})
		g.Runs += len(s.own[seed])
	}
	shown := low
	if shown == 0 {
		shown = high
	}
	at := s.at(shown)
	mean := at.mean()
	g.SLO = c.Point.SLO.String(at.slo.bounds)
	if w := c.Point.Workload; s.unit == loadSessions {
		w.Rate = shown
		g.Requests = at.trials[0].requests
		if text := shortRun(&w, g.Requests, mean.e2e); text != "" {
			g.Warnings = append(g.Warnings, warn.New(warn.ShortRun, "%s", text))
		}
	}
	g.Warnings = append(g.Warnings, s.warnings(g.Requests)...)
	g.Warnings = append(g.Warnings, c.Point.Warnings...)
	if len(s.seeds) >= leastSeeds {
		from, to := tInterval(g.SeedGoodputs, GoodputConfidence)
		g.Low, g.High = &from, &to
		if low < from || low > to {
			g.Warnings = append(g.Warnings, warn.New(warn.Interval, "the goodput by the mean over seeds is "+
				"outside the interval of the seeds' own"))
		}
	}
	if !math.IsInf(high, 1) {
		g.LimitedBy = strings.Join(s.at(high).why(), " and ")
	}
	for i, b := range at.slo.bounds {
		g.Bounds = append(g.Bounds, Bounded{b, mean.Bounded[i]})
	}
	g.RejectedShare, g.MissedShare, g.ThroughputTokS = mean.Rejected, mean.Missed, mean.ThroughputTokS
	return g
}

// tInterval returns Student's t interval of the mean of xs, cut off at 0.
func tInterval(xs []float64, confidence float64) (low, high float64) {
	mean, half := stats.Mean(xs, confidence)
	return math.Max(0, mean-half), mean + half
}
