package capacity

import (
	"context"
	"fmt"
	"sync"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/sched"
)

// alike caches runs for points that differ only in limits that the run does not reach. Such runs
// are identical to the last event. It is safe for concurrent use.
type alike struct {
	mu   sync.Mutex
	runs map[string][]madeRun     // by what is not a limit
	now  map[string]chan struct{} // one that is being made, of those; closed at its end
}

// madeRun is a finished run of one point.
type madeRun struct {
	limit bounded
	reach *sim.Reach // nil: not known
	hash  string
	whole bool   // nothing could end it early
	cut   string // what it missed, which ended it
	sum   sim.Summary
}

// bounded are the limits that runs of candidates often do not reach.
type bounded struct {
	family   string // the other keys of the point
	requests int    // a batch
	tokens   int    // a step, where prefills do not count: segments are limited by token-layers
	each     int    // tokens of a decode in a step
	hbm      int64  // for KV, which both change: activations and logits have the rest
}

// boundedOf returns the limits of a point. Points of one family have the same hash except for these
// limits.
func boundedOf(p *config.Point, hash func(*config.Point) (string, error)) (l bounded, err error) {
	model, err := p.Shard()
	if err != nil {
		return l, err
	}
	machine, err := p.Machine()
	if err != nil {
		return l, err
	}
	if l.hbm, err = config.KVBudget(machine, &model, &p.System); err != nil {
		return l, err
	}
	other := *p
	other.Name = ""
	l.requests, l.tokens = batchLimits(&p.System)
	other.System.MaxRequests = 1
	if l.each = 1 + p.System.Speculation.Tokens; l.tokens > 0 {
		other.System.MaxTokens = l.each
	}
	l.family, err = hash(&other)
	return l, err
}

// batchLimits returns the maximum number of requests in a batch, and of tokens, or 0 if prefills
// reach the token limit.
func batchLimits(s *sim.Spec) (requests, tokens int) {
	if planner := (sched.Planner{Mode: s.Prefill.Split}); planner.Segmented() {
		tokens = s.MaxTokens
	}
	return s.MaxRequests, tokens
}

// beyond reports whether a run with this reach stays below the limits.
func (l *bounded) beyond(r *sim.Reach) bool {
	return r != nil && !r.Short && r.Requests < l.requests &&
		(l.tokens == 0 || r.Requests*l.each < l.tokens)
}

// keep adds a run.
func (a *alike) keep(r madeRun) {
	if !r.limit.beyond(r.reach) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.runs == nil {
		a.runs = map[string][]madeRun{}
	}
	a.runs[r.limit.family] = append(a.runs[r.limit.family], r)
}

// await is find after the run of the family that is in progress, if any, has ended. If it finds
// none, the caller makes the run and calls done at its end.
func (a *alike) await(ctx context.Context, l *bounded, whole bool) (
	r madeRun, ok bool, done func()) {
	key := fmt.Sprint(l.family, whole)
	a.mu.Lock()
	defer a.mu.Unlock()
	if r, ok = a.find(l, whole); ok {
		return r, true, nil
	}
	if ended := a.now[key]; ended != nil {
		a.mu.Unlock()
		select {
		case <-ended:
		case <-ctx.Done():
		}
		a.mu.Lock()
		r, ok = a.find(l, whole)
		return r, ok, func() {}
	}
	if a.now == nil {
		a.now = map[string]chan struct{}{}
	}
	ended := make(chan struct{})
	a.now[key] = ended
	return r, false, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.now, key)
		close(ended)
	}
}

// find returns a run that is valid for the given limits. The caller holds the lock. A run that was
// cut short had waiting requests that might not fit into less HBM.
func (a *alike) find(l *bounded, whole bool) (madeRun, bool) {
	for _, r := range a.runs[l.family] {
		enough := r.reach != nil && l.hbm >= r.reach.HBM
		if r.cut != "" {
			enough = l.hbm >= r.limit.hbm
		}
		if enough && l.beyond(r.reach) && r.whole == whole {
			return r, true
		}
	}
	return madeRun{}, false
}
