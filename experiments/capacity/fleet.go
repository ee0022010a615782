package capacity

import (
	"context"
	"fmt"
	"math"

	"github.com/sparseserve/sparseserve/experiments/bracket"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// fleetRun is the outcome of a number of replicas under a load: one trial and one summary per seed.
type fleetRun struct {
	stage    string
	replicas int
	load     float64
	requests int
	slo      limits
	trials   []Trial
	sums     []metrics.Summary
}

// Stages of a purchase search, in addition to the stages of a goodput search.
const (
	stageReplicas = "replicas" // how many the load needs
	stageExpected = "expected" // replicas for the load without a margin
	stageMiss     = "miss"     // distance of a candidate that no number of replicas makes hold
	stageEffect   = "effect"   // of a tenth more of a resource
)

func (r *fleetRun) why() []string { return r.slo.why(r.trials) }

func (r *fleetRun) holds() bool { return r.slo.holds(r.trials) }

// severity returns the largest share of a limit and the second largest. A limit with a share above
// 1 is missed.
func (r *fleetRun) severity() (worst, next Share) {
	for _, s := range r.shares() {
		switch {
		case s.Of > worst.Of:
			worst, next = s, worst
		case s.Of > next.Of:
			next = s
		}
	}
	return worst, next
}

// Share is how much of a service level limit a run uses.
type Share struct {
	Limit string  `json:"limit"` // in words
	Name  string  `json:"name"`  // ttft, tbt, tpot, e2e, delay, requests, rejected
	Of    float64 `json:"of"`    // the value, over the limit
}

// shares returns the share of each limit that the run uses, from the mean over seeds.
func (r *fleetRun) shares() []Share {
	mean := meanTrial(r.trials)
	var all []Share
	each := r.slo.Rule == config.SLORequests
	if !each {
		for i := range r.slo.bounds {
			b := &r.slo.bounds[i]
			all = append(all, Share{b.String(), b.Name, mean.Bounded[i] / b.Limit})
		}
	}
	limit := max(r.slo.MissShare, 1e-9)
	words := fmt.Sprintf("at most %g %% of the requests ", 100*r.slo.MissShare)
	if each {
		all = append(all, Share{words + "rejected or without a bound", "requests", mean.Missed / limit})
	}
	if mean.Rejected > 0 {
		all = append(all, Share{words + "rejected", "rejected", mean.Rejected / limit})
	}
	return all
}

// serve runs replicas of a candidate under a load, and repeats the run with more requests until it
// is long enough.
func (b *buyer) serve(ctx context.Context, o *option, stage string, replicas int, load float64,
	requests int) (*fleetRun, error) {
	return lengthened(requests, func(requests int) (*fleetRun, int, error) {
		r, err := b.once(ctx, o, stage, replicas, load, requests)
		if err != nil || !r.holds() || !endless(&o.Point.Workload) || r.requests >= mostRequests {
			return r, 0, err
		}
		point := withLoad(o.Point, replicas, load, requests)
		enough := longest(&point.Workload, r.trials)
		if enough <= r.requests {
			enough = 0
		}
		return r, enough, nil
	})
}

// once runs replicas of a candidate under a load with its seeds.
func (b *buyer) once(ctx context.Context, o *option, stage string, replicas int, load float64,
	requests int) (r *fleetRun, err error) {
	r = &fleetRun{stage: stage, replicas: replicas, load: load, slo: o.slo}
	points := o.atSeeds(o.Seeds, func(p *config.Point) {
		*p = withLoad(*p, replicas, load, requests)
		o.slo.judge(p)
	})
	r.requests = points[0].Workload.Requests
	r.trials, r.sums, err = b.trials(ctx, points, o.slo.bounds, stage == stageExpected)
	for i := range r.trials {
		r.trials[i].Stage, r.trials[i].Rate = stage, load
	}
	return r, err
}

// least returns the run with the fewest replicas, at most `most`, that meet the service level; nil
// if there is none. If n replicas meet it, more replicas are assumed to meet it too. If the price
// sets the maximum, the maximum is tried first because most candidates fail with it.
func (b *buyer) least(ctx context.Context, o *option, most int, priced bool) (*fleetRun, error) {
	line := bracket.Line{Start: 1, Least: 1, Most: float64(most), Round: math.Floor}
	if priced {
		line.Start = line.Most
	}
	var found *fleetRun
	_, err := line.Find(nil, func(replicas float64, _ bool) (fails bool, err error) {
		r, err := b.serve(ctx, o, stageReplicas, int(replicas), o.target, 0)
		if err != nil {
			return false, err
		}
		if o.runs = append(o.runs, r); r.holds() {
			found = r
		}
		return !r.holds(), nil
	})
	return found, err
}
