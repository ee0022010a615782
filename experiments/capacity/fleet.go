package capacity

import (
	"context"
	"math"

	"github.com/sparseserve/sparseserve/experiments/bracket"
	"github.com/sparseserve/sparseserve/experiments/config"
)

// Stages of a purchase search, in addition to the stages of a goodput search.
const (
	stageReplicas = "replicas" // how many the load needs
	stageExpected = "expected" // replicas for the load without a margin
	stageMiss     = "miss"     // distance of a candidate that no number of replicas makes hold
	stageEffect   = "effect"   // of a tenth more of a resource
)

// serve runs replicas of a candidate under a load, and repeats the run with more requests until it
// is long enough.
func (b *buyer) serve(ctx context.Context, o *option, stage string, replicas int, load float64,
	requests int) (*attempt, error) {
	return lengthened(requests, func(requests int) (*attempt, error) {
		return b.once(ctx, o, stage, replicas, load, requests)
	})
}

// once runs replicas of a candidate under a load with its seeds.
func (b *buyer) once(ctx context.Context, o *option, stage string, replicas int, load float64,
	requests int) (*attempt, error) {
	a := &attempt{stage: stage, replicas: replicas, load: load, slo: o.slo}
	return a, b.try(ctx, a, &o.Candidate, o.Seeds, func(p *config.Point) {
		*p = withLoad(*p, replicas, load, requests)
		o.slo.judge(p)
	})
}

// least returns the run with the fewest replicas, at most `most`, that meet the service level; nil
// if there is none. If n replicas meet it, more replicas are assumed to meet it too. If the price
// sets the maximum, the maximum is tried first because most candidates fail with it.
func (b *buyer) least(ctx context.Context, o *option, most int, priced bool) (*attempt, error) {
	line := bracket.Line{Start: 1, Least: 1, Most: float64(most), Round: math.Floor}
	if priced {
		line.Start = line.Most
	}
	var found *attempt
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
