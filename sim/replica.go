package sim

import (
	"cmp"
	"slices"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// Place is the place of a server in a fleet.
type Place struct {
	Replica int   // replica number
	Number  int32 // server number, unique in the fleet over all restarts; NewReplica sets it
	Steps   int64 // steps that the replica ran before
	load    Load
}

// Ticket is a request on its way to a server.
type Ticket struct {
	ID        int // 0: not numbered yet
	Arrival   Arrival
	Generated int // tokens emitted by failed replicas
	// Stranded reports that no replica has taken it since a time.
	Stranded bool
	Since    des.Time
	pulls    bool // its arrival fetches the next request; not in a closed loop
	Record   metrics.Life
}

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
	if s.Route == nil {
		return
	}
	s.place.load.remove(r.load)
	r.load = loadOf(s.memory, r)
	s.place.load.add(r.load)
}

// NewReplica returns a server of a fleet with no requests.
func NewReplica(cfg Config, run *Shared, at Place) (*Server, error) {
	s, err := NewServer(cfg)
	if err != nil {
		return nil, err
	}
	at.Number = int32(len(run.servers))
	s.Shared, s.place, s.steps = run, at, at.Steps
	run.servers = append(run.servers, s)
	return s, nil
}

// Tokens returns the server's KV capacity.
func (s *Server) Tokens() int64 { return s.memory.Tokens(s.memory.Total()) }

// Load returns the remaining work of a replica.
func (s *Server) Load() *Load { return &s.place.load }

// Fail ends the server in mid-step. It returns its requests in order of arrival, and its steps so
// far.
func (s *Server) Fail() (lost []Ticket, steps int64) {
	s.servers[s.place.Number] = nil // its pending events are ignored from now on
	// Retries count as Again, so record its first prefills now.
	s.Metrics.Lost(s.Now(), s.prefixes.use(&s.step.meta.Prefix))
	for _, t := range s.front.coming.All() {
		if t.ID > 0 {
			lost = append(lost, t)
		}
	}
	for _, r := range s.requests {
		lost = append(lost, Ticket{ID: r.ID, Arrival: r.arrival, Generated: r.Generated,
			Record: r.record})
	}
	slices.SortFunc(lost, func(a, b Ticket) int { return cmp.Compare(a.ID, b.ID) })
	return lost, s.steps
}
