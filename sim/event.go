package sim

import "github.com/sparseserve/sparseserve/sim/des"

type event struct {
	kind   eventKind
	server int32 // server number
	// saveDone: sequence number of the last save done; landed: ID; arrive: place in coming
	n int64
}

type eventKind uint8

const (
	arrive eventKind = iota
	stepDone
	saveDone
	landed
	// fleet events
	route
	goDown
	comeUp
	goDraining
)

// Order of events at one time: replica changes, save completions, arrivals, step ends.
var priority = [...]int8{comeUp: -3, goDown: -2, goDraining: -1, saveDone: 0, landed: 0,
	route: 1, arrive: 1, stepDone: 2}

func (s *Server) handle(ev event) error {
	switch ev.kind {
	case saveDone:
		return s.memory.saved(ev.n)
	case landed:
		s.sched.Landed(s.prefixes.landed(int(ev.n)).Request)
		return nil
	case stepDone:
		return s.commit(s.events.Now())
	}
	t := s.coming.take(ev.n)
	if err := s.arrival(t); err != nil || !t.pulls {
		return err
	}
	return s.fetch()
}

// proceed begins a step if the device is idle and a request can run.
func (s *Server) proceed() error {
	now := s.events.Now()
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
	s.events.Schedule(at, priority[kind], event{kind: kind, server: s.number, n: n})
}
