package fleet

import "github.com/sparseserve/sparseserve/sim/des"

// Outage is a failure of one replica. It loses all state and comes back empty.
type Outage struct {
	Replica int
	At, For des.Time
}

// Drain stops a replica from taking requests at a time. It serves the requests that it already has.
type Drain struct {
	Replica int
	At      des.Time
}

// scheduleChanges schedules the outages and drains of the replicas. At one time replicas come up
// first, then others go down, then others drain.
func (f *Fleet) scheduleChanges() {
	for _, o := range f.Outages {
		f.At(o.At, -2, func() error { f.fail(&f.replicas[o.Replica]); return nil })
		f.At(o.At+o.For, -3, func() error { return f.comeUp(&f.replicas[o.Replica], o.Replica) })
	}
	for _, d := range f.Drains {
		f.At(d.At, -1, func() error { f.replicas[d.Replica].draining = true; return nil })
	}
}

// fail ends a replica in mid-step. Its requests restart on other replicas: prompt and emitted
// tokens are prefilled, as after a preemption with recomputation. Emitted tokens stay emitted.
func (f *Fleet) fail(r *replica) {
	if r.outages++; r.outages > 1 {
		return // already down
	}
	lost, steps := r.server.Fail()
	r.server, r.steps = nil, steps
	for _, t := range lost {
		f.Metrics.Retry(&t.Record)
		f.send(t)
	}
}

// comeUp restarts a replica with empty state and sends the waiting requests.
func (f *Fleet) comeUp(r *replica, number int) error {
	if r.outages--; r.outages > 0 {
		return nil
	}
	if err := f.startReplica(r, number); err != nil {
		return err
	}
	waiting := f.Waiting
	f.Waiting = nil
	for _, t := range waiting {
		f.send(t)
	}
	return nil
}
