package sim

import (
	"cmp"
	"slices"

	"github.com/sparseserve/sparseserve/sim/des"
)

// Outage is a failure of one replica: all that it has is lost, and it comes back empty.
type Outage struct {
	Replica int
	At, For des.Time
}

// Drain has a replica take no more requests from a time on; it serves those that it has.
type Drain struct {
	Replica int
	At      des.Time
}

// scheduleChanges schedules what happens to the replicas.
func (f *Fleet) scheduleChanges() {
	for _, o := range f.Outages {
		f.schedule(o.At, goDown, int64(o.Replica))
		f.schedule(o.At+o.For, comeUp, int64(o.Replica))
	}
	for _, d := range f.Drains {
		f.schedule(d.At, goDraining, int64(d.Replica))
	}
}

// fail ends a replica in mid-step. Its requests begin anew at others: prompt and tokens emitted so
// far are prefilled, as after a preemption by recomputation, and what was emitted stays so.
func (f *Fleet) fail(r *replica) {
	if r.outages++; r.outages > 1 {
		return // it is down
	}
	s := r.server
	f.servers[s.number] = nil // events of its own are none any more
	r.server, r.steps = nil, s.steps
	if s.prefixes != nil { // the retries of prefills that had begun are no first ones
		f.metrics.lostStep(f.events.Now(), s.usedPrefixes())
	}
	for _, t := range s.abandoned() {
		t.retries++
		f.metrics.retried++
		f.send(t)
	}
}

// comeUp brings a replica back, with nothing of what it had, and sends on what waits for one.
func (f *Fleet) comeUp(r *replica, number int) error {
	if r.outages--; r.outages > 0 {
		return nil
	}
	if err := f.startReplica(r, number); err != nil {
		return err
	}
	waiting := f.waiting
	f.waiting = nil
	for _, t := range waiting {
		f.send(t)
	}
	return nil
}

// abandoned returns the requests of a server that is no more, in the order of their arrival.
func (s *Server) abandoned() []ticket {
	var all []ticket
	for _, t := range s.coming.held {
		if t.id > 0 {
			all = append(all, t)
		}
	}
	for _, r := range s.requests {
		t := ticket{id: r.ID, arrival: r.arrival, generated: r.Generated, life: r.life}
		t.recalled.rows = nil // of the request's place in a step that is lost
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b ticket) int { return cmp.Compare(a.id, b.id) })
	return all
}
