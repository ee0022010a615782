package sim

import "github.com/sparseserve/sparseserve/sim/des"

// event is an event of a server or of its run.
type event struct {
	kind   eventKind
	server int32 // server number; below 0 for events of a run
	// saveDone: sequence number of the last save done; landed: ID; route and arrive: place in fetched
	// and coming; call: index in calls
	n int64
}

// eventKind is the kind of an event.
type eventKind uint8

const (
	arrive eventKind = iota
	stepDone
	saveDone
	landed
	route
	call
)

// Order of events at one time: save completions, arrivals, step ends.
var priority = [...]int8{saveDone: 0, landed: 0, arrive: 1, route: 1, stepDone: 2}

func (s *Server) handle(ev event) error {
	switch ev.kind {
	case saveDone:
		return s.memory.saved(ev.n)
	case landed:
		s.sched.Landed(s.prefixes.landed(int(ev.n)).Request)
		return nil
	case stepDone:
		return s.commit(s.Now())
	}
	return s.arrival(s.front.coming.Take(ev.n))
}

// proceed begins a step if the device is idle and a request can run.
func (s *Server) proceed() error {
	now := s.Now()
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

func (s *Server) schedule(at des.Time, kind eventKind, n int64) {
	s.events.Schedule(at, priority[kind], event{kind: kind, server: s.place.Number, n: n})
}
