package fleet

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
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
	servers  []*server         // by server number in events; nil: failed
	touched  []*server         // servers with an event at this time
	coming   des.Slots[ticket] // fetched, not yet routed
	arrivals int
	waiting  []ticket     // no replica takes requests
	waited   map[int]bool // IDs of all requests that ever waited
	view     View
}

// replica is a place for a server.
type replica struct {
	server   *server // nil while it is down
	outages  int     // number of overlapping outages
	draining bool
	steps    int64 // steps before the last failure
}

// server is the server of a replica.
type server struct {
	sim.Replica
	number  int
	touched bool         // had an event at this time
	sent    *sentPrompts // of router prefix; nil: another
}

// ticket is a request on its way to a replica.
type ticket struct {
	sim.Ticket
	pulls    bool // its arrival fetches the next request; not in a closed loop
	stranded bool // waiting for a replica since this time
	since    des.Time
}

// Events of a fleet, of no server.
const (
	route sim.EventKind = iota
	goDown
	comeUp
	goDraining
)

// Order of events at one time: replica changes before all others.
var priority = [...]int8{comeUp: -3, goDown: -2, goDraining: -1, route: sim.PriorityArrive}

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
	f.replicas = make([]replica, cfg.Replicas)
	f.view.Last = -1
	tokens := int64(0)
	for i := range f.replicas {
		if err := f.startReplica(&f.replicas[i], i); err != nil {
			return nil, err
		}
		tokens += min(f.replicas[i].server.Tokens(), math.MaxInt64-tokens)
	}
	f.Metrics = metrics.New(cfg.About(cfg.Replicas, tokens))
	return f, nil
}

// startReplica gives a replica an empty server.
func (f *Fleet) startReplica(r *replica, index int) error {
	cfg := f.Config.Config
	var err error
	if cfg.Device, err = f.NewDevice(); err != nil {
		return err
	}
	s := &server{number: len(f.servers)}
	s.Replica, err = sim.NewReplica(cfg, f.Shared, sim.Place{Replica: index, Number: int32(s.number),
		Steps: r.steps, Ended: f.ended})
	if err != nil {
		return err
	}
	if f.router.remembers {
		s.sent = newSentPrompts(s.Tokens())
	}
	r.server, f.servers = s, append(f.servers, s)
	return nil
}

// Run serves the workload to its end, as Server.Run does.
func (f *Fleet) Run(ctx context.Context, w sim.Workload, rec sim.Recorder) (*metrics.Run, error) {
	f.Stopped = func() error { return context.Cause(ctx) }
	return sim.Drive(ctx, f, w, rec)
}

// Begin implements sim.Runner.
func (f *Fleet) Begin(w sim.Workload, rec sim.Recorder) error {
	f.Rec = rec
	f.scheduleChanges()
	for range f.Feed.Begin(w) {
		if err := f.fetch(); err != nil {
			return err
		}
	}
	return nil
}

// Interrupted implements sim.Runner.
func (f *Fleet) Interrupted() *metrics.Run {
	f.Metrics.End(f.Events.Now())
	for i := range f.waiting {
		f.Metrics.Wait(f.Events.Now() - f.waiting[i].since)
	}
	return f.Metrics.Figures()
}

// End implements sim.Runner.
func (f *Fleet) End() (*metrics.Run, error) {
	if n := len(f.waiting); n > 0 {
		return nil, fmt.Errorf("fleet: %d requests have no replica to go to: all are drained", n)
	}
	for i := range f.replicas {
		if s := f.replicas[i].server; s != nil {
			if err := s.End(); err != nil {
				return nil, err
			}
		}
	}
	return f.Metrics.Figures(), nil
}

// Advance implements sim.Runner. Steps begin after all events of their time.
func (f *Fleet) Advance() (more bool, err error) {
	ev, ok := f.Events.Next()
	if !ok {
		return false, nil
	}
	if err := f.handle(ev); err != nil {
		return false, f.placed(err)
	}
	if f.Events.More() {
		return true, nil
	}
	for _, s := range f.touched {
		s.touched = false
		if f.servers[s.number] == nil {
			continue
		}
		if err := s.Proceed(); err != nil {
			return false, f.placed(err)
		}
	}
	f.touched = f.touched[:0]
	return true, nil
}

// placed adds the time to an error. Errors of the workload already contain their position.
func (f *Fleet) placed(err error) error {
	if f.Feed.Broken() {
		return err
	}
	return fmt.Errorf("at %v: %w", f.Events.Now(), err)
}

func (f *Fleet) handle(ev sim.Event) error {
	if ev.Server < 0 {
		return f.change(ev)
	}
	s := f.servers[ev.Server]
	if s == nil {
		return nil
	}
	if !s.touched {
		s.touched = true
		f.touched = append(f.touched, s)
	}
	return s.Handle(ev)
}

// change handles an event of the fleet.
func (f *Fleet) change(ev sim.Event) error {
	switch ev.Kind {
	case route:
		return f.arrival(f.coming.Take(ev.N))
	case goDown:
		f.fail(&f.replicas[ev.N])
	case comeUp:
		return f.comeUp(&f.replicas[ev.N], int(ev.N))
	case goDraining:
		f.replicas[ev.N].draining = true
	}
	return nil
}

// fetch takes the next request from the workload and schedules its arrival.
func (f *Fleet) fetch() error {
	a, ok, err := f.Feed.Next(f.Events.Now())
	if err == nil && ok {
		f.schedule(a.At, route, f.coming.Hold(ticket{Ticket: sim.Ticket{Arrival: a},
			pulls: f.Feed.Open()}))
	}
	return err
}

// arrival routes a request as it arrives.
func (f *Fleet) arrival(t ticket) error {
	f.arrivals++
	t.ID = f.arrivals
	f.Metrics.Arrived(t.Arrival.At)
	f.send(t)
	if !t.pulls {
		return nil
	}
	return f.fetch()
}

// ended schedules the request that follows an ended one, if any.
func (f *Fleet) ended(a sim.Arrival, at des.Time, rejected bool) error {
	next, more, err := f.Feed.After(a, at, rejected, f.Events.Now())
	if err == nil && more {
		f.schedule(next.At, route, f.coming.Hold(ticket{Ticket: sim.Ticket{Arrival: next}}))
	}
	return err
}

// send passes a request to the replica that the router picks.
func (f *Fleet) send(t ticket) {
	v := &f.view
	v.Candidates = v.Candidates[:0]
	for i := range f.replicas {
		if r := &f.replicas[i]; r.server != nil && !r.draining {
			c := Candidate{Replica: i, Load: *r.server.Load()}
			if sent := r.server.sent; sent != nil {
				c.Sent = min(sent.tokens(t.Arrival.Content), int64(t.Arrival.Prompt-1))
			}
			v.Candidates = append(v.Candidates, c)
		}
	}
	now := f.Events.Now()
	if len(v.Candidates) == 0 {
		if !t.stranded {
			if t.stranded, t.since = true, now; !f.waited[t.ID] {
				f.waited[t.ID] = true
				f.Metrics.Strand()
			}
		}
		f.waiting = append(f.waiting, t)
		return
	}
	if t.stranded {
		t.stranded = false
		f.Metrics.Wait(now - t.since)
	}
	v.Last = v.Candidates[f.router.Pick(v, &t.Arrival)].Replica
	to := f.replicas[v.Last].server
	if to.sent != nil {
		to.sent.add(t.Arrival.Content)
	}
	to.Offer(now, t.Ticket)
}

func (f *Fleet) schedule(at des.Time, kind sim.EventKind, n int64) {
	f.Events.Schedule(at, priority[kind], sim.Event{Kind: kind, Server: -1, N: n})
}

// Check implements sim.Runner.
func (f *Fleet) Check() error {
	inFlight, emitted := len(f.waiting), int64(0)
	for i := range f.waiting {
		emitted += int64(f.waiting[i].Generated)
	}
	for i := range f.replicas {
		if s := f.replicas[i].server; s != nil {
			n, tokens, err := s.Check()
			if err != nil {
				return err
			}
			inFlight, emitted = inFlight+n, emitted+tokens
		}
	}
	return f.Metrics.Check(inFlight, emitted)
}

// Servers returns the replicas that are up.
func (f *Fleet) Servers() (up []sim.Replica) {
	for i := range f.replicas {
		if s := f.replicas[i].server; s != nil {
			up = append(up, s.Replica)
		}
	}
	return up
}
