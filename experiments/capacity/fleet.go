package capacity

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/sparseserve/sparseserve/experiments/bracket"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim"
)

// fleetRun is the outcome of a number of replicas under a load: one trial per seed, and summaries
// of the trials that ran to the end.
type fleetRun struct {
	stage    string
	replicas int
	load     float64
	requests int
	slo      limits
	trials   []Trial
	sums     []sim.Summary
}

// Stages of a purchase search, in addition to the stages of a goodput search.
const (
	stageReplicas = "replicas" // how many the load needs
	stageExpected = "expected" // what is bought under the load, without a margin
	stageMiss     = "miss"     // how near a candidate comes that no number of replicas makes hold
	stageEffect   = "effect"   // of a resource, that there is a tenth more of
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
	if !r.slo.requests {
		for i := range r.slo.bounds {
			b := &r.slo.bounds[i]
			all = append(all, Share{b.String(), b.Name, mean.Bounded[i] / b.Limit})
		}
	}
	limit := max(r.slo.missShare, 1e-9)
	words := fmt.Sprintf("at most %g %% of the requests ", 100*r.slo.missShare)
	if r.slo.requests {
		all = append(all, Share{words + "rejected or without a bound", "requests", mean.Missed / limit})
	}
	if mean.Rejected > 0 {
		all = append(all, Share{words + "rejected", "rejected", mean.Rejected / limit})
	}
	return all
}

// mostLonger is the maximum number of times that a run is extended.
const mostLonger = 6

// serve runs replicas of a candidate under a load, and repeats the run with more requests until it
// is long enough.
func (b *buyer) serve(ctx context.Context, o *option, stage string, replicas int, load float64,
	requests int) (*fleetRun, error) {
	for range mostLonger {
		r, err := b.once(ctx, o, stage, replicas, load, requests, false)
		if err != nil || !r.holds() || !endless(&o.Point.Workload) {
			return r, err
		}
		point := withLoad(o.Point, replicas, load, requests)
		for i := range r.sums {
			requests = max(requests, steady(&point.Workload, &r.sums[i]))
		}
		if requests <= r.requests || r.requests >= mostRequests {
			return r, nil
		}
	}
	return b.once(ctx, o, stage, replicas, load, requests, false)
}

// once runs replicas of a candidate under a load with its seeds. A run of one seed ends as soon as
// its outcome is known, unless whole is set.
func (b *buyer) once(ctx context.Context, o *option, stage string, replicas int, load float64,
	requests int, whole bool) (*fleetRun, error) {
	r := &fleetRun{stage: stage, replicas: replicas, load: load, slo: o.slo}
	points := make([]config.Point, len(o.Seeds))
	for i, seed := range o.Seeds {
		points[i] = withLoad(o.Point, replicas, load, requests)
		points[i].Seed = seed
		o.slo.judge(&points[i])
		points[i].Name = config.PointName(&points[i])
	}
	r.requests = points[0].Workload.Requests
	var results []run.Result
	var cut string
	var err error
	if len(points) == 1 {
		results, cut, err = b.single(ctx, &points[0], o.slo, whole)
	} else {
		results, err = b.made(ctx, b.slotted, points)
	}
	if err != nil {
		return nil, err
	}
	if cut != "" {
		r.trials = []Trial{{Stage: stage, Rate: load, Seed: o.Seeds[0], Cut: cut,
			Bounded: make([]float64, len(o.slo.bounds))}}
	}
	for i := range results {
		trial, err := b.trial(&results[i], o.slo.bounds)
		if err != nil {
			return nil, err
		}
		trial.Stage, trial.Rate = stage, load
		r.trials, r.sums = append(r.trials, trial), append(r.sums, results[i].Summary)
	}
	return r, nil
}

// known reports whether the store has the run of a point. It also registers the run, or what cut it
// short, for points that are alike, so that a plan that continues skips the runs that it skipped.
func (b *buyer) known(p *config.Point, cut string) (found bool, err error) {
	dir, _, err := b.Store.Find(p)
	if err != nil || dir == "" && cut == "" {
		return false, err
	}
	var reach keptReach
	if kept, err := b.Store.Note(p, run.NoteReach, &reach); err != nil || !kept {
		return dir != "", err
	}
	m := madeRun{cut: cut, reach: reach.Reach, whole: reach.Whole}
	if m.limit, err = boundedOf(p, b.Store.Hash); err != nil {
		return false, err
	}
	if cut == "" {
		if m.sum, err = run.ReadSummary(dir); err != nil {
			return false, nil // damaged: it runs again
		}
	}
	if m.hash, err = b.Store.Hash(p); err == nil {
		b.alike.keep(m)
	}
	return dir != "", err
}

// keptReach is the note of a run's distance to its limits, which a continued plan needs.
type keptReach struct {
	Reach *sim.Reach `json:"reach"`
	Whole bool       `json:"whole"`
}

// single runs a point or reuses an equivalent run. The run ends as soon as its outcome is known,
// unless whole is set; cut is the limit that it missed.
func (b *buyer) single(ctx context.Context, p *config.Point, slo limits, whole bool) (
	result []run.Result, cut string, err error) {
	var watch *early
	if !whole {
		if watch, err = newEarly(p, slo, &b.traffic); err != nil {
			return nil, "", err
		}
	}
	if watch != nil {
		if cut = string(watch.missed); cut == "" {
			_, err = b.Store.Note(p, run.NoteMissed, &cut)
		}
		if cut != "" && err == nil {
			_, err = b.known(p, cut)
		}
		if cut != "" || err != nil {
			return nil, cut, err
		}
	}
	if found, err := b.known(p, ""); found || err != nil {
		if err == nil {
			result, err = b.made(ctx, b.slotted, []config.Point{*p})
		}
		return result, "", err
	}
	sum, ok, err := b.Store.Same(p)
	if ok || err != nil {
		return []run.Result{{Point: *p, Summary: sum}}, "", err
	}
	m := madeRun{whole: watch == nil}
	if m.limit, err = boundedOf(p, b.Store.Hash); err != nil {
		return nil, "", err
	}
	same, ok, done := b.alike.await(ctx, &m.limit, m.whole)
	if ok {
		if same.cut != "" {
			return nil, same.cut, b.Store.KeepNote(p, run.NoteMissed, same.cut)
		}
		err := b.Store.KeepNote(p, run.NoteSame, same.hash)
		return []run.Result{{Point: *p, Summary: same.sum}}, "", err
	}
	defer done()
	result, err = b.made(ctx, func(ctx context.Context, p config.Point, sink run.Sink) (
		sim.Summary, error) {
		if watch != nil {
			sink.Watch = watch
		}
		sum, err := b.slotted(ctx, p, sink)
		m.reach = sum.Reach
		if why := missed(""); m.reach != nil && (err == nil || errors.As(err, &why)) {
			reach := keptReach{m.reach, m.whole}
			if e := b.Store.KeepNote(&p, run.NoteReach, reach); e != nil {
				return sum, e
			}
		}
		return sum, err
	}, []config.Point{*p})
	if why := missed(""); errors.As(err, &why) {
		m.cut = string(why)
		result, err = nil, b.Store.KeepNote(p, run.NoteMissed, m.cut)
	}
	if err != nil {
		return nil, "", err
	}
	if m.cut == "" {
		m.sum = result[0].Summary
	}
	if m.hash, err = b.Store.Hash(p); err == nil {
		b.alike.keep(m)
	}
	return result, m.cut, err
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
