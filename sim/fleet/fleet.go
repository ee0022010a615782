package fleet

import (
	"errors"
	"fmt"
	"math"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// Config describes identical servers that share one workload.
type Config struct {
	sim.Config        // of each server; Device is not used
	Replicas   int    // at least 1
	Router     string // one of RouterNames
	Outages    []Outage
	Drains     []Drain
	// NewDevice creates the device of a replica, at the start and after a failure.
	NewDevice func() (sim.Device, error)
}

// Fleet runs replicas of a server in one virtual time. A router assigns each arriving request to a
// replica. One queue holds the events of all replicas. At equal times they are ordered by kind and
// then by scheduling, as in a Server, so that runs repeat exactly. One replica is equivalent to a
// Server.
type Fleet struct {
	Config
	*sim.Shared
	router   *Router
	replicas []replica
	waited   map[int]bool // IDs of all requests that ever waited
	view     View
}

// replica is a place for a server.
type replica struct {
	server   *sim.Server  // nil while it is down
	sent     *sentPrompts // of router prefix; nil: another
	outages  int          // number of overlapping outages
	draining bool
	steps    int64 // steps before the last failure
}

// New returns a fleet with no requests.
func New(cfg Config) (*Fleet, error) {
	if cfg.Addressed || cfg.RecordTo != nil || cfg.Trace != nil || cfg.Idle != nil {
		return nil, errors.New("fleet: a device that computes and a recording need one server, " +
			"not a fleet")
	}
	if cfg.Future != nil {
		return nil,
			errors.New("fleet: prefix_cache.eviction = \"belady\" needs one server, not a fleet: " +
				"which replica gets a request is not known")
	}
	for _, o := range cfg.Outages {
		if o.Replica < 0 || o.Replica >= cfg.Replicas || o.At < 0 || o.For <= 0 {
			return nil, fmt.Errorf("fleet: no such outage of %d replicas: %+v", cfg.Replicas, o)
		}
	}
	for _, d := range cfg.Drains {
		if d.Replica < 0 || d.Replica >= cfg.Replicas || d.At < 0 {
			return nil, fmt.Errorf("fleet: no such drain of %d replicas: %+v", cfg.Replicas, d)
		}
	}
	router, err := routerNamed(cfg.Router)
	if err != nil {
		return nil, err
	}
	f := &Fleet{Config: cfg, Shared: sim.NewShared(), router: router, waited: map[int]bool{}}
	f.replicas, f.Route = make([]replica, cfg.Replicas), f.send
	f.view.Last = -1
	tokens := int64(0)
	for i := range f.replicas {
		if err := f.startReplica(&f.replicas[i], i); err != nil {
			return nil, err
		}
		tokens += min(f.replicas[i].server.Tokens(), math.MaxInt64-tokens)
	}
	f.Metrics = metrics.New(cfg.About(cfg.Replicas, tokens))
	f.scheduleChanges()
	return f, nil
}

// startReplica gives a replica an empty server.
func (f *Fleet) startReplica(r *replica, index int) error {
	cfg := f.Config.Config
	var err error
	if cfg.Device, err = f.NewDevice(); err != nil {
		return err
	}
	r.server, err = sim.NewReplica(cfg, f.Shared, sim.Place{Replica: index, Steps: r.steps})
	if err == nil && f.router.remembers {
		r.sent = newSentPrompts(r.server.Tokens())
	}
	return err
}

// send passes a request to the replica that the router picks.
func (f *Fleet) send(t sim.Ticket) {
	v := &f.view
	v.Candidates = v.Candidates[:0]
	for i := range f.replicas {
		if r := &f.replicas[i]; r.server != nil && !r.draining {
			c := Candidate{Replica: i, Load: *r.server.Load()}
			if sent := r.sent; sent != nil {
				c.Sent = min(sent.tokens(t.Arrival.Content), int64(t.Arrival.Prompt-1))
			}
			v.Candidates = append(v.Candidates, c)
		}
	}
	now := f.Now()
	if len(v.Candidates) == 0 {
		if !t.Stranded {
			if t.Stranded, t.Since = true, now; !f.waited[t.ID] {
				f.waited[t.ID] = true
				f.Metrics.Strand()
			}
		}
		f.Waiting = append(f.Waiting, t)
		return
	}
	if t.Stranded {
		t.Stranded = false
		f.Metrics.Wait(now - t.Since)
	}
	v.Last = v.Candidates[f.router.Pick(v, &t.Arrival)].Replica
	to := &f.replicas[v.Last]
	if to.sent != nil {
		to.sent.add(t.Arrival.Content)
	}
	to.server.Offer(t)
}
