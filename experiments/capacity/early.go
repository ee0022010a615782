package capacity

import (
	"math"
	"strconv"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// missed is the error that ends a run after it can no longer meet the service level.
type missed string

func (m missed) Error() string { return "misses " + string(m) }

// roundingError bounds the relative error of a run's figures.
const roundingError = 2 * stats.Error

// early watches one run and ends it after the rest of the run can no longer make it meet the
// service level. The verdict equals the verdict of the whole run. It is a run.Watcher.
type early struct {
	slo      limits
	requests int // of the whole run, at most
	bad      int // rejected, or without a bound where each request is held to them
	refused  int
	tallies  []tally
	gaps     *tally // that on TBT; nil without one
	missed   missed // at first what no run of the requests holds
}

// tally counts the values of one bound.
type tally struct {
	bound config.Bound
	sum   float64
	over  int // beyond the limit
	// most is the maximum number of values at the end. The bound is certainly missed if more than
	// spare values exceed it, or their sum exceeds all.
	most, spare, all float64
}

// newEarly returns nil if a run must not end early: its number of requests is unknown, or its
// metrics exclude warm-up or drain.
func newEarly(p *config.Point, slo limits, t *traffic) (*early, error) {
	whole := p.Metrics.Warmup == sim.CutNone && p.Metrics.Drain == sim.CutNone
	if p.Workload.Requests == 0 || !whole {
		return nil, nil
	}
	model, err := hw.LoadModel(p.Model)
	if err != nil {
		return nil, err
	}
	lengths, err := t.lengths(p, model.Counter())
	if err != nil {
		return nil, err
	}
	e := &early{slo: slo, requests: p.Workload.Requests}
	floor, ok, err := newFloor(p)
	if err != nil {
		return nil, err
	}
	if ok && !lengths.turns {
		e.missed = missed(floor.late(lengths, slo))
	}
	if slo.requests {
		return e, nil
	}
	for _, b := range slo.bounds {
		most := float64(e.requests)
		switch b.Name {
		case "tpot": // requests of one token have none
			continue
		case "tbt":
			if lengths.turns {
				return nil, nil
			}
			most = float64(lengths.output())
		}
		e.tallies = append(e.tallies, newTally(b, most))
	}
	for i := range e.tallies {
		if e.tallies[i].bound.Name == "tbt" {
			e.gaps = &e.tallies[i]
		}
	}
	return e, nil
}

func newTally(b config.Bound, most float64) tally {
	t := tally{bound: b, most: most, spare: math.Inf(1), all: math.Inf(1)}
	if b.Stat == "mean" {
		t.all = b.Limit * most * (1 + roundingError)
		return t
	}
	percent, err := strconv.ParseFloat(b.Stat[1:], 64)
	if err != nil {
		panic(err)
	}
	// Rank percent/100 (most-1), as package quantile has it, and all above it are over the limit.
	t.spare = most - 1 - math.Floor(percent/100*(most-1))
	return t
}

func (t *tally) add(value float64) {
	t.sum += value
	if value > t.bound.Limit*(1+roundingError) {
		t.over++
	}
}

func (t *tally) decided() bool { return float64(t.over) > t.spare || t.sum > t.all }

// Ended implements run.Watcher.
func (e *early) Ended(r *sim.RequestRecord) {
	share := e.slo.missShare * float64(e.requests)
	if r.Rejected != "" {
		e.refused++
		e.bad++
	} else if e.slo.requests && !config.Good(e.slo.bounds, r) {
		e.bad++
	}
	switch {
	case float64(e.refused) > share:
		e.missed = "rejected"
	case e.slo.requests && float64(e.bad) > share:
		e.missed = "requests"
	}
	if r.Rejected != "" {
		return
	}
	for i := range e.tallies {
		if t := &e.tallies[i]; t != e.gaps {
			t.add(t.bound.Of(r))
		}
	}
}

// Gap implements run.Watcher.
func (e *early) Gap(t des.Time) {
	if e.gaps != nil {
		e.gaps.add(t.Seconds())
	}
}

// Enough implements run.Watcher.
func (e *early) Enough() error {
	for i := range e.tallies {
		if e.missed == "" && e.tallies[i].decided() {
			e.missed = missed(e.tallies[i].bound.Name)
		}
	}
	if e.missed != "" {
		return e.missed
	}
	return nil
}
