package sim

import "github.com/sparseserve/sparseserve/sim/des"

// Event is an event of a server.
type Event struct {
	Kind   EventKind
	Server int32 // server number; below 0 for events of a fleet
	// saveDone: sequence number of the last save done; landed: ID; arrive: place in coming
	N int64
}

// EventKind is the kind of an event.
type EventKind uint8

const (
	arrive EventKind = iota
	stepDone
	saveDone
	landed
)

// Order of events at one time: save completions, arrivals, step ends. Changes of replicas come
// first, with a priority below 0.
var priority = [...]int8{saveDone: 0, landed: 0, arrive: PriorityArrive, stepDone: 2}

// PriorityArrive is the priority of arrivals.
const PriorityArrive = 1

func (s *Server) handle(ev Event) error {
	switch ev.Kind {
	case saveDone:
		return s.memory.saved(ev.N)
	case landed:
		s.sched.Landed(s.prefixes.landed(int(ev.N)).Request)
		return nil
	case stepDone:
		return s.commit(s.Events.Now())
	}
	t := s.coming.Take(ev.N)
	if err := s.arrival(t.Ticket); err != nil || !t.pulls {
		return err
	}
	return s.fetch()
}

// proceed begins a step if the device is idle and a request can run.
func (s *Server) proceed() error {
	now := s.Events.Now()
	if s.busy {
		return nil
	}
	if s.sched.Waiting()+s.sched.Running()+len(s.arrivedLate) > 0 {
		if err := s.startStep(now); err != nil || s.busy {
			return err
		}
		s.prefixes.save(now) // no step will do it, and a request may wait for the blocks
		s.prefixes.await(now)
	}
	return s.memory.drain(now)
}

func (s *Server) schedule(at des.Time, kind EventKind, n int64) {
	s.Events.Schedule(at, priority[kind], Event{Kind: kind, Server: s.place.Number, N: n})
}
