package capacity

import (
	"context"
	"fmt"
	"slices"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/traces"
)

// attempt is the outcome of a server, or of replicas of it, under a load: one trial and one summary
// per seed.
type attempt struct {
	stage    string
	replicas int
	load     float64
	work     traces.Spec
	slo      limits
	trials   []Trial
	sums     []metrics.Summary
}

// Trial is the outcome of one run of an attempt.
type Trial struct {
	Seed           uint64
	Bounded        []float64 // value of each bounded statistic, s
	Rejected       float64   // rejected requests over all requests
	Missed         float64   // share that was rejected or missed a bound; 0 where none is asked for
	Unstable       bool      // the queue grows without end
	Completed      int
	ThroughputTokS float64
	Hash           string
	requests       int     // of the run
	e2e            float64 // mean, s
}

// limits are the service level for trials, with its bounds on a machine.
type limits struct {
	config.SLO
	bounds []config.Bound
}

// why names the bounds of the service level that the trials miss in their mean; it is empty if they
// meet the level. A queue that grows without end in half of the runs fails the level.
func (l limits) why(trials []Trial) []string {
	if slices.ContainsFunc(trials, func(t Trial) bool { return t.Completed == 0 }) {
		return []string{"nothing completed"}
	}
	mean := meanTrial(trials)
	why := l.Exceeded(mean.Rejected, mean.Missed, mean.Bounded, l.bounds)
	if mean.Unstable && !slices.Contains(why, "delay") {
		why = append(why, "queue")
	}
	return why
}

// holds reports whether the trials meet the service level.
func (l limits) holds(trials []Trial) bool { return len(l.why(trials)) == 0 }

// limitsOf returns the service level of a point on its model and card.
func limitsOf(p *config.Point) (limits, error) {
	bounds, err := p.Bounds()
	return limits{p.SLO, bounds}, err
}

// try makes the runs of an attempt at a candidate, after set has changed each, if they are not in
// the store. Runs near a limit of the expected load are repeated with other step times.
func (p *Planner) try(ctx context.Context, a *attempt, c *Candidate, seeds []uint64,
	set func(*config.Point)) error {
	points := c.atSeeds(seeds, set)
	a.work = points[0].Workload
	grid := run.Grid{Run: p.slotted, Workers: min(cap(p.slots), len(points))}
	if a.stage == stageExpected {
		grid.Again = func(int) {}
	}
	results, err := p.Store.Do(ctx, grid, points)
	a.sums = run.Summaries(results)
	for i := range results {
		t, failed := p.trial(&results[i], a.slo.bounds)
		if err == nil {
			err = failed
		}
		a.trials = append(a.trials, t)
	}
	return err
}

// slotted is Run with a limited number of parallel runs.
func (p *Planner) slotted(ctx context.Context, point config.Point,
	sink run.Sink) (metrics.Summary, error) {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
		return p.Run(ctx, point, sink)
	case <-ctx.Done():
		return metrics.Summary{}, ctx.Err()
	}
}

func (p *Planner) trial(r *run.Result, bounds []config.Bound) (Trial, error) {
	hash, err := p.Store.Hash(&r.Point)
	s := &r.Summary
	t := Trial{
		Seed: r.Point.Seed, Rejected: s.RejectedShare(),
		Unstable: s.QueueGrows(), Completed: s.Completed, ThroughputTokS: s.ThroughputTokS, Hash: hash,
		requests: s.Requests, e2e: s.E2E.Mean,
	}
	for i := range bounds {
		t.Bounded = append(t.Bounded, bounds[i].Value(s))
	}
	if s.GoodShare != nil {
		t.Missed = 1 - *s.GoodShare
	}
	return t, err
}

// mostLonger is the maximum number of times that a run is extended.
const mostLonger = 6

// lengthened makes an attempt that meets the level with more and more requests, until its runs are
// long enough.
func lengthened(requests int, try func(requests int) (*attempt, error)) (*attempt, error) {
	for i := 0; ; i++ {
		a, err := try(requests)
		if err != nil || i == mostLonger || !endless(&a.work) || !a.holds() {
			return a, err
		}
		for j := range a.trials {
			requests = max(requests, steadyAt(&a.work, a.trials[j].e2e))
		}
		if requests = min(requests, mostRequests); requests <= a.work.Requests {
			return a, nil
		}
	}
}

func (a *attempt) why() []string { return a.slo.why(a.trials) }

func (a *attempt) holds() bool { return len(a.why()) == 0 }

// worst returns the largest share of shares: the limit that the run is nearest to, or, above 1, the
// limit that it misses by the largest factor.
func (a *attempt) worst() (worst Share) {
	for _, s := range a.shares() {
		if s.Of > worst.Of {
			worst = s
		}
	}
	return worst
}

// Share is how much of a service level limit a run uses.
type Share struct {
	Limit string  `json:"limit"` // in words
	Name  string  `json:"name"`  // ttft, tbt, tpot, e2e, delay, requests, rejected
	Of    float64 `json:"of"`    // the value, over the limit
}

// shares returns, for each limit, the mean of its statistic over seeds, divided by the limit.
func (a *attempt) shares() []Share {
	mean := a.mean()
	var all []Share
	each := a.slo.Rule == config.SLORequests
	if !each {
		for i := range a.slo.bounds {
			b := &a.slo.bounds[i]
			all = append(all, Share{b.String(), b.Name, mean.Bounded[i] / b.Limit})
		}
	}
	limit := max(a.slo.MissShare, 1e-9)
	words := fmt.Sprintf("at most %g %% of the requests ", 100*a.slo.MissShare)
	if each {
		all = append(all, Share{words + "rejected or without a bound", "requests", mean.Missed / limit})
	}
	if mean.Rejected > 0 {
		all = append(all, Share{words + "rejected", "rejected", mean.Rejected / limit})
	}
	return all
}

// mean returns the mean over the seeds.
func (a *attempt) mean() Trial { return meanTrial(a.trials) }

// meanTrial returns the mean over trials, from which the outcome of a rate is derived.
func meanTrial(trials []Trial) Trial {
	mean := Trial{Bounded: make([]float64, len(trials[0].Bounded))}
	unstable := 0
	for _, t := range trials {
		n := float64(len(trials))
		for i, v := range t.Bounded {
			mean.Bounded[i] += v / n
		}
		mean.Rejected += t.Rejected / n
		mean.Missed += t.Missed / n
		mean.ThroughputTokS += t.ThroughputTokS / n
		mean.e2e += t.e2e / n
		mean.Completed += t.Completed
		if t.Unstable {
			unstable++
		}
	}
	mean.Unstable = 2*unstable >= len(trials)
	return mean
}
