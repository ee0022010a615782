package sim

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// Shared is what the servers of a run share.
type Shared struct {
	Events  des.Queue[Event]
	Feed    Feed
	Rec     Recorder
	Metrics *metrics.Run
	Stopped func() error // returns why the run must end, or nil
}

// NewShared returns what the servers of a run share before it begins.
func NewShared() *Shared { return &Shared{Stopped: func() error { return nil }} }

// Place is the place of a server in a fleet.
type Place struct {
	Replica int   // replica number
	Number  int32 // server number, unique in the fleet over all restarts
	Steps   int64 // steps that the replica ran before
	// Ended is called when a request has ended; nil: the server is alone.
	Ended func(a Arrival, at des.Time, rejected bool) error
	load  Load
}

// Ticket is a request on its way to a server.
type Ticket struct {
	ID        int // 0: not numbered yet
	Arrival   Arrival
	Generated int // tokens emitted by failed replicas
	life
}

// Record returns the record of the request.
func (t *Ticket) Record() *metrics.Life { return &t.record }

// Load is the remaining work of a replica or of a request. Routers read it.
type Load struct {
	Requests   int   // unfinished requests; only for a replica
	Tokens     int64 // tokens to prefill and to emit
	WorkingSet int64 // bytes of KV: the decodes' selections with offloading, all KV otherwise
}

func (l *Load) add(o Load) {
	l.Tokens += o.Tokens
	l.WorkingSet += o.WorkingSet
}

func (l *Load) remove(o Load) {
	l.Tokens -= o.Tokens
	l.WorkingSet -= o.WorkingSet
}

// expected returns the load of a request that has not arrived yet. A prompt has at most the given
// number of tokens.
func expected(m residency, most int, t *Ticket) Load {
	prompt := min(t.Arrival.Prompt, most)
	return Load{
		Tokens:     int64(prompt) + int64(t.Arrival.Output),
		WorkingSet: m.decodeBytes(prompt + t.Generated),
	}
}

// loadOf returns the load of a request. Its working set is measured once it decodes.
func loadOf(m residency, r *request) Load {
	return Load{Tokens: int64(r.Target-r.Done) + int64(r.Output-r.Generated),
		WorkingSet: m.workingSet(r)}
}

// weigh updates a replica's load after a request has changed.
func (s *Server) weigh(r *request) {
	if s.place.Ended == nil {
		return
	}
	s.place.load.remove(r.load)
	r.load = loadOf(s.memory, r)
	s.place.load.add(r.load)
}

// Replica is a server in a fleet, which shares a run with others and gives the server its requests.
type Replica struct{ s *Server }

// NewReplica returns a server with no requests as a replica of a fleet.
func NewReplica(cfg Config, run *Shared, at Place) (Replica, error) {
	s, err := NewServer(cfg)
	if err != nil {
		return Replica{}, err
	}
	s.Shared, s.place, s.steps = run, at, at.Steps
	return Replica{s}, nil
}

// Server returns the replica's server.
func (r Replica) Server() *Server { return r.s }

// Tokens returns the replica's KV capacity.
func (r Replica) Tokens() int64 { return r.s.memory.Tokens(r.s.memory.Total()) }

// Load returns the remaining work of the replica.
func (r Replica) Load() *Load { return &r.s.place.load }

// Offer sends a request to the replica.
func (r Replica) Offer(at des.Time, t Ticket) { r.s.offer(at, t, false) }

// Handle handles an event of the replica.
func (r Replica) Handle(ev Event) error { return r.s.handle(ev) }

// Proceed begins a step if the device is idle and a request can run, after all events of its time.
func (r Replica) Proceed() error {
	if err := r.s.proceed(); err != nil {
		return fmt.Errorf("replica %d, step %d: %w", r.s.place.Replica, r.s.steps, err)
	}
	return nil
}

// Fail ends the replica in mid-step. It returns its requests in order of arrival, and its steps so
// far.
func (r Replica) Fail() (lost []Ticket, steps int64) {
	s := r.s
	// Retries count as Again, so record its first prefills now.
	s.Metrics.Lost(s.Events.Now(), s.prefixes.use(&s.step.meta.Prefix))
	for _, t := range s.coming.All() {
		if t.ID > 0 {
			lost = append(lost, t.Ticket)
		}
	}
	for _, r := range s.requests {
		lost = append(lost, Ticket{ID: r.ID, Arrival: r.arrival, Generated: r.Generated, life: r.life})
	}
	slices.SortFunc(lost, func(a, b Ticket) int { return cmp.Compare(a.ID, b.ID) })
	return lost, s.steps
}

// End ends the run of the replica after the last event.
func (r Replica) End() error {
	if n := r.s.sched.Waiting() + r.s.sched.Running(); n > 0 {
		return fmt.Errorf("sim: %d requests of replica %d can never be scheduled", n, r.s.place.Replica)
	}
	r.s.memory.sampled(r.s.Metrics)
	return nil
}

// Check verifies the laws that hold between events. It returns the number of the replica's requests
// and the tokens that they have emitted.
func (r Replica) Check() (requests int, emitted int64, err error) {
	s := r.s
	if emitted, err = s.checkServer(); err != nil {
		return 0, 0, fmt.Errorf("replica %d: %w", s.place.Replica, err)
	}
	for _, t := range s.coming.All() {
		emitted += int64(t.Generated)
	}
	return len(s.requests) + s.coming.Len(), emitted, nil
}
