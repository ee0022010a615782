package capacity

import (
	"context"
	"fmt"
	"sync"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/sched"
)

// alike keeps runs for points that differ from theirs in limits alone which neither reaches. Such
// runs are the same to the last event. Safe for concurrent use.
type alike struct {
	mu   sync.Mutex
	runs map[string][]madeRun     // by what is not a limit
	now  map[string]chan struct{} // one that is being made, of those; closed at its end
}

// madeRun is a run that was made of one point.
type madeRun struct {
	limit bounded
	reach *sim.Reach // nil: not known
	hash  string
	whole bool   // nothing could end it early
	cut   string // what it missed, which ended it
	sum   sim.Summary
}

// bounded are the limits that the runs of candidates often do not reach.
type bounded struct {
	family   string // what else there is of the point
	requests int    // a batch
	tokens   int    // a step, where prefills do not count: segments are limited by token-layers
	each     int    // tokens of a decode in a step
	hbm      int64  // for KV, which both change: activations and logits have the rest
}

// boundedOf returns those of a point. Two points of one family have the same hash but for limits.
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

// batchLimits are the requests that a system runs at a time at most, and the tokens, or 0 where
// prefills come to them.
func batchLimits(s *sim.Spec) (requests, tokens int) {
	if planner := (sched.Planner{Mode: s.Prefill.Split}); planner.Segmented() {
		tokens = s.MaxTokens
	}
	return s.MaxRequests, tokens
}

// beyond says whether a run that came so far stays below the limits.
func (l *bounded) beyond(r *sim.Reach) bool {
	return r != nil && !r.Short && r.Requests < l.requests &&
		(l.tokens == 0 || r.Requests*l.each < l.tokens)
}

// keep keeps a run.
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

// await is find, once the run has ended that is being made of the family, if there is one. Where
// there was none the caller makes one, and calls done at its end.
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

// find returns a run that is that of the given limits. The caller has locked. Of one that was cut,
// requests were waiting that less HBM might have had no place for at all.
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
