package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// Shared is what the servers of a run share, and how the run advances. A Server that is alone has
// its own.
type Shared struct {
	Metrics *metrics.Run
	Stopped func() error // returns why the run must end, or nil
	// Route passes an arriving request to a server; nil: there is one, of no fleet.
	Route   func(Ticket)
	Waiting []Ticket // requests that no server takes

	rec      Recorder
	events   des.Queue[event]
	feed     feed
	calls    []func() error
	fetched  des.Slots[Ticket] // not yet routed
	arrivals int
	servers  []*Server // by number in events; nil: failed
	touched  []*Server // with an event at this time
}

// NewShared returns what the servers of a run share before it begins.
func NewShared() *Shared { return &Shared{Stopped: func() error { return nil }} }

// Now returns the time.
func (r *Shared) Now() des.Time { return r.events.Now() }

// At calls do at a time. Of what happens at that time, an order below 0 comes first.
func (r *Shared) At(at des.Time, order int8, do func() error) {
	r.calls = append(r.calls, do)
	r.events.Schedule(at, order, event{kind: call, server: -1, n: int64(len(r.calls) - 1)})
}

// Run serves the workload to its end and returns the run's metrics. If ctx ends first it returns
// the cause of ctx. With an error it returns the metrics of the part that ran.
func (r *Shared) Run(ctx context.Context, w Workload, rec Recorder) (*metrics.Run, error) {
	r.Stopped = func() error { return context.Cause(ctx) }
	if err := r.Begin(w, rec); err != nil {
		return nil, err
	}
	for {
		if ctx.Err() != nil { // check at each event, because a step may take long
			return r.interrupted(), context.Cause(ctx)
		}
		if more, err := r.Advance(); err != nil {
			return r.interrupted(), plain(ctx, err)
		} else if !more {
			return r.End()
		}
		if checkLaws {
			if err := r.Check(); err != nil {
				panic(fmt.Sprintf("sim: %v", err))
			}
		}
	}
}

// plain returns the cause of ctx if err wraps it, without the step in which it was noticed.
func plain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, cause) {
		return cause
	}
	return err
}

// Begin reads the first request from the workload, or the first of each client.
func (r *Shared) Begin(w Workload, rec Recorder) error {
	r.rec = rec
	for range r.feed.begin(w) {
		if err := r.fetch(); err != nil {
			return err
		}
	}
	return nil
}

// Advance handles one event. more is false if there was none. Steps begin after all events of their
// time.
func (r *Shared) Advance() (more bool, err error) {
	before := r.Now()
	ev, ok := r.events.Next()
	if !ok {
		return false, nil
	}
	if s := r.servers[0]; r.Route == nil && r.Now() > before && !s.busy && s.Idle != nil {
		if err := s.Idle(r.Now() - before); err != nil {
			return false, err
		}
	}
	if ev.server < 0 {
		if err := r.handle(ev); err != nil {
			return false, r.placed(r.servers[0], err)
		}
	} else if s := r.servers[ev.server]; s != nil {
		if !s.touched {
			s.touched = true
			r.touched = append(r.touched, s)
		}
		if err := s.handle(ev); err != nil {
			return false, r.placed(s, err)
		}
	}
	if r.events.More() {
		return true, nil
	}
	for _, s := range r.touched {
		if s.touched = false; r.servers[s.place.Number] == nil {
			continue
		}
		if err := s.proceed(); err != nil {
			return false, r.placed(s, err)
		}
	}
	r.touched = r.touched[:0]
	return true, nil
}

// placed adds time and step to an error of a server. Errors of the workload already contain their
// position.
func (r *Shared) placed(s *Server, err error) error {
	switch {
	case r.feed.broken:
		return err
	case s == nil:
		return fmt.Errorf("at %v: %w", r.Now(), err)
	case r.Route != nil:
		return fmt.Errorf("at %v, replica %d, step %d: %w", r.Now(), s.place.Replica, s.steps, err)
	}
	return fmt.Errorf("at %v, step %d: %w", r.Now(), s.steps, err)
}

// handle handles an event of no server.
func (r *Shared) handle(ev event) error {
	if ev.kind == call {
		return r.calls[ev.n]()
	}
	return r.arrived(r.fetched.Take(ev.n))
}

// arrived numbers an arriving request and passes it on.
func (r *Shared) arrived(t Ticket) error {
	r.arrivals++
	t.ID = r.arrivals
	r.Metrics.Arrived(t.Arrival.At)
	if r.Route != nil {
		r.Route(t)
	} else {
		r.servers[0].Offer(t)
	}
	if !t.pulls {
		return nil
	}
	return r.fetch()
}

// fetch takes the next request from the workload and schedules its arrival. An open-loop workload
// is read one request ahead of the clock, a closed loop one request per client.
func (r *Shared) fetch() error {
	a, more, err := r.feed.next(r.Now())
	if err == nil && more {
		r.arrive(Ticket{Arrival: a, pulls: r.feed.loop == nil})
	}
	return err
}

// ended schedules the request that follows an ended one, if any.
func (r *Shared) ended(a Arrival, at des.Time, rejected bool) error {
	next, more, err := r.feed.after(a, at, rejected, r.Now())
	if err == nil && more {
		r.arrive(Ticket{Arrival: next})
	}
	return err
}

// arrive schedules an arrival at the router, or at the front end of a server that is alone.
func (r *Shared) arrive(t Ticket) {
	r.events.Schedule(t.Arrival.At, priority[route],
		event{kind: route, server: -1, n: r.fetched.Hold(t)})
}

// interrupted returns the metrics of a run that ends early.
func (r *Shared) interrupted() *metrics.Run {
	r.Metrics.End(r.Now())
	for i := range r.Waiting {
		r.Metrics.Wait(r.Now() - r.Waiting[i].Since)
	}
	return r.Metrics.Figures()
}

// End returns the metrics after the last event.
func (r *Shared) End() (*metrics.Run, error) {
	if n := len(r.Waiting); n > 0 {
		return nil, fmt.Errorf("fleet: %d requests have no replica to go to: all are drained", n)
	}
	for _, s := range r.servers {
		if s == nil {
			continue
		}
		if n := s.sched.Waiting() + s.sched.Running(); n > 0 {
			return nil, fmt.Errorf("sim: %d requests of replica %d can never be scheduled; the first waits "+
				"since its arrival", n, s.place.Replica)
		}
		s.memory.sampled(r.Metrics)
	}
	return r.Metrics.Figures(), nil
}

// Check verifies the laws that hold between events: blocks (law 1), HBM (law 2), saved KV (law 3),
// requests and tokens (law 4). Tests call it; builds with the tag lawcheck call it after every
// event.
func (r *Shared) Check() error {
	inFlight, emitted := len(r.Waiting), int64(0)
	for i := range r.Waiting {
		emitted += int64(r.Waiting[i].Generated)
	}
	for _, s := range r.servers {
		if s == nil {
			continue
		}
		n, tokens, err := s.check()
		if err != nil {
			return r.placed(s, err)
		}
		inFlight, emitted = inFlight+n, emitted+tokens
	}
	return r.Metrics.Check(inFlight, emitted)
}

// check verifies the laws of one server. It returns the number of its requests and the tokens that
// they have emitted.
func (s *Server) check() (requests int, emitted int64, err error) {
	if w, r := s.sched.Waiting()+len(s.arrivedLate), s.sched.Running(); w+r != len(s.requests) {
		return 0, 0, fmt.Errorf("law 4: %d requests in flight, %d waiting + %d running",
			len(s.requests), w, r)
	}
	for _, t := range s.front.coming.All() {
		if t.ID > 0 {
			requests, emitted = requests+1, emitted+int64(t.Generated)
		}
	}
	for _, r := range s.requests {
		emitted += int64(r.Generated)
		if r.Generated > r.Output {
			return 0, 0, fmt.Errorf("law 4: request %d emitted %d of %d tokens", r.ID, r.Generated,
				r.Output)
		}
	}
	return requests + len(s.requests), emitted, s.memory.check()
}
