package sim

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// FleetConfig describes identical servers that share one workload.
type FleetConfig struct {
	Config          // of each server; Device is not used
	Replicas int    // at least 1
	Router   string // one of RouterNames
	Outages  []Outage
	Drains   []Drain
	// NewDevice creates the device of a replica, at the start and after a failure.
	NewDevice func() (Device, error)
}

// Fleet runs replicas of a server in one virtual time. A router assigns each arriving request to a
// replica. One queue holds the events of all replicas. At equal times they are ordered by kind and
// then by scheduling, as in a Server, so that runs repeat exactly. One replica is equivalent to a
// Server.
type Fleet struct {
	FleetConfig
	*run
	router   *Router
	replicas []replica
	servers  []*Server    // by server number in events; nil: failed
	touched  []*Server    // servers with an event at this time
	coming   tickets      // fetched, not yet routed
	waiting  []ticket     // no replica takes requests
	waited   map[int]bool // IDs of all requests that ever waited
	view     View
}

// replica is a place for a server.
type replica struct {
	server   *Server // nil while it is down
	outages  int     // number of overlapping outages
	draining bool
	steps    int64 // steps before the last failure
}

// NewFleet returns a fleet with no requests.
func NewFleet(cfg FleetConfig) (*Fleet, error) {
	if cfg.Addressed || cfg.RecordTo != nil || cfg.Trace != nil || cfg.Idle != nil {
		return nil, errors.New("sim: a device that computes and a recording need one server, " +
			"not a fleet")
	}
	if cfg.Future != nil {
		return nil,
			errors.New("sim: prefix_cache.eviction = \"belady\" needs one server, not a fleet: " +
				"which replica gets a request is not known")
	}
	for _, o := range cfg.Outages {
		if o.Replica < 0 || o.Replica >= cfg.Replicas || o.At < 0 || o.For <= 0 {
			return nil, fmt.Errorf("sim: no such outage of %d replicas: %+v", cfg.Replicas, o)
		}
	}
	for _, d := range cfg.Drains {
		if d.Replica < 0 || d.Replica >= cfg.Replicas || d.At < 0 {
			return nil, fmt.Errorf("sim: no such drain of %d replicas: %+v", cfg.Replicas, d)
		}
	}
	router, err := routerNamed(cfg.Router)
	if err != nil {
		return nil, err
	}
	f := &Fleet{FleetConfig: cfg, run: newRun(), router: router,
		waited: map[int]bool{}}
	f.replicas = make([]replica, cfg.Replicas)
	f.view.Last = -1
	tokens := int64(0)
	for i := range f.replicas {
		if err := f.startReplica(&f.replicas[i], i); err != nil {
			return nil, err
		}
		m := f.replicas[i].server.memory
		tokens += min(m.Tokens(m.Total()), math.MaxInt64-tokens)
	}
	f.metrics = metrics.New(cfg.about(cfg.Replicas, tokens))
	return f, nil
}

// startReplica gives a replica an empty server.
func (f *Fleet) startReplica(r *replica, index int) error {
	cfg := f.Config
	var err error
	if cfg.Device, err = f.NewDevice(); err != nil {
		return err
	}
	s, err := NewServer(cfg)
	if err != nil {
		return err
	}
	s.run, s.place = f.run, place{fleet: f, replica: index, number: int32(len(f.servers))}
	if f.router.remembers {
		s.sent = newSentPrompts(s.memory.Tokens(s.memory.Total()))
	}
	s.steps = r.steps
	r.server, f.servers = s, append(f.servers, s)
	return nil
}

// Run serves the workload to its end, as Server.Run does.
func (f *Fleet) Run(ctx context.Context, w Workload, rec Recorder) (*metrics.Run, error) {
	f.stopped = func() error { return context.Cause(ctx) }
	return drive(ctx, f, w, rec)
}

func (f *Fleet) begin(w Workload, rec Recorder) error {
	f.rec = rec
	f.scheduleChanges()
	for range f.feed.begin(w) {
		if err := f.fetch(); err != nil {
			return err
		}
	}
	return nil
}

// interrupted returns the metrics of a run that ends here.
func (f *Fleet) interrupted() *metrics.Run {
	f.metrics.End(f.events.Now())
	for i := range f.waiting {
		f.metrics.Wait(f.events.Now() - f.waiting[i].since)
	}
	return f.metrics.Figures()
}

// end returns the metrics after the last event.
func (f *Fleet) end() (*metrics.Run, error) {
	if n := len(f.waiting); n > 0 {
		return nil, fmt.Errorf("sim: %d requests have no replica to go to: all are drained", n)
	}
	for i := range f.replicas {
		s := f.replicas[i].server
		if s == nil {
			continue
		}
		if n := s.sched.Waiting() + s.sched.Running(); n > 0 {
			return nil, fmt.Errorf("sim: %d requests of replica %d can never be scheduled", n, i)
		}
		s.memory.sampled(s.metrics)
	}
	return f.metrics.Figures(), nil
}

// advance handles one event. Steps begin after all events of their time.
func (f *Fleet) advance() (more bool, err error) {
	ev, ok := f.events.Next()
	if !ok {
		return false, nil
	}
	if err := f.handle(ev); err != nil {
		return false, f.placed(err)
	}
	if f.events.More() {
		return true, nil
	}
	for _, s := range f.touched {
		s.touched = false
		if f.servers[s.number] == nil {
			continue
		}
		if err := s.proceed(); err != nil {
			return false, f.placed(fmt.Errorf("replica %d, step %d: %w", s.replica, s.steps, err))
		}
	}
	f.touched = f.touched[:0]
	return true, nil
}

// placed adds the time to an error. Errors of the workload already contain their position.
func (f *Fleet) placed(err error) error {
	if f.feed.broken {
		return err
	}
	return fmt.Errorf("at %v: %w", f.events.Now(), err)
}

func (f *Fleet) handle(ev event) error {
	switch ev.kind {
	case route:
		return f.arrival(f.coming.take(ev.n))
	case goDown:
		f.fail(&f.replicas[ev.n])
		return nil
	case comeUp:
		return f.comeUp(&f.replicas[ev.n], int(ev.n))
	case goDraining:
		f.replicas[ev.n].draining = true
		return nil
	}
	s := f.servers[ev.server]
	if s == nil {
		return nil
	}
	if !s.touched {
		s.touched = true
		f.touched = append(f.touched, s)
	}
	return s.handle(ev)
}

// fetch takes the next request from the workload and schedules its arrival.
func (f *Fleet) fetch() error {
	a, ok, err := f.feed.next(f.events.Now())
	if err == nil && ok {
		f.schedule(a.At, route, f.coming.hold(ticket{arrival: a, pulls: f.feed.loop == nil}))
	}
	return err
}

// arrival routes a request as it arrives.
func (f *Fleet) arrival(t ticket) error {
	f.nextID++
	t.id = f.nextID
	f.metrics.Arrived(t.arrival.At)
	pulls := t.pulls
	t.pulls = false // the replica must not fetch another request
	f.send(t)
	if !pulls {
		return nil
	}
	return f.fetch()
}

// ended schedules the request that follows an ended one, if any.
func (f *Fleet) ended(a Arrival, at des.Time, rejected bool) error {
	next, more, err := f.feed.after(a, at, rejected, f.events.Now())
	if err == nil && more {
		f.schedule(next.At, route, f.coming.hold(ticket{arrival: next}))
	}
	return err
}

// send passes a request to the replica that the router picks.
func (f *Fleet) send(t ticket) {
	v := &f.view
	v.Candidates = v.Candidates[:0]
	for i := range f.replicas {
		if r := &f.replicas[i]; r.server != nil && !r.draining {
			l := &r.server.load
			c := Candidate{Replica: i, Requests: l.requests, Tokens: l.tokens, WorkingSet: l.workingSet}
			if sent := r.server.sent; sent != nil {
				c.Sent = min(sent.tokens(t.arrival.Content), int64(t.arrival.Prompt-1))
			}
			v.Candidates = append(v.Candidates, c)
		}
	}
	now := f.events.Now()
	if len(v.Candidates) == 0 {
		if !t.stranded {
			if t.stranded, t.since = true, now; !f.waited[t.id] {
				f.waited[t.id] = true
				f.metrics.Strand()
			}
		}
		f.waiting = append(f.waiting, t)
		return
	}
	if t.stranded {
		t.stranded = false
		f.metrics.Wait(now - t.since)
	}
	v.Last = v.Candidates[f.router.Pick(v, &t.arrival)].Replica
	to := f.replicas[v.Last].server
	if to.sent != nil {
		to.sent.add(t.arrival.Content)
	}
	to.offer(now, t)
}

func (f *Fleet) schedule(at des.Time, kind eventKind, n int64) {
	f.events.Schedule(at, priority[kind], event{kind: kind, n: n})
}

// check verifies the laws of every server, and law 4 over all.
func (f *Fleet) check() error {
	inFlight, emitted := len(f.waiting), int64(0)
	for i := range f.waiting {
		emitted += int64(f.waiting[i].generated)
	}
	for i := range f.replicas {
		s := f.replicas[i].server
		if s == nil {
			continue
		}
		tokens, err := s.checkRequests()
		if err == nil {
			err = s.checkBlocks()
		}
		if err != nil {
			return fmt.Errorf("replica %d: %w", i, err)
		}
		inFlight += len(s.requests) + s.coming.len()
		emitted += tokens
		for j := range s.coming.held {
			emitted += int64(s.coming.held[j].generated)
		}
	}
	return f.metrics.Check(inFlight, emitted)
}
