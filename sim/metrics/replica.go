package metrics

import (
	"math"

	"github.com/sparseserve/sparseserve/sim/des"
)

// replicaUse accumulates the work of one replica. A server without a fleet is the only replica.
type replicaUse struct {
	uses
	requests int // completed requests
	busy     des.Time
}

// step adds a step of the replica.
func (u *replicaUse) step(r *Step) {
	u.busy += r.Timing.Elapsed
	u.within(r, math.MinInt64, math.MaxInt64)
}

// ReplicaLoad summarises one replica of a fleet.
type ReplicaLoad struct {
	Requests  int     `json:"requests"`    // completed requests
	BusyShare float64 `json:"busy_share"`  // fraction of time in finished steps
	PeakKVUse float64 `json:"peak_kv_use"` // largest fraction in use of the HBM for KV
}

// uses returns the mean utilisation over replicas, and the peak of any replica, over a run of the
// given duration in seconds.
func (m *Run) uses(seconds float64) Uses {
	all := m.replicas[0].uses
	for i := range m.replicas[1:] {
		all.join(&m.replicas[1+i].uses)
	}
	return all.of(&m.of, seconds*float64(len(m.replicas)))
}

// join adds the use of another replica in the same time.
func (u *uses) join(o *uses) {
	for i, h := range []*held{&u.hbm, &u.dram, &u.batch, &u.room} {
		more := []*held{&o.hbm, &o.dram, &o.batch, &o.room}[i]
		h.byteSeconds, h.peak = h.byteSeconds+more.byteSeconds, max(h.peak, more.peak)
	}
	for i, w := range []*worked{&u.gpu, &u.h2d, &u.d2h} {
		more := []*worked{&o.gpu, &o.h2d, &o.d2h}[i]
		w.busy, w.peak = w.busy+more.busy, max(w.peak, more.peak)
	}
}

// fleet returns the figures of a fleet. They are zero for a single replica without retries.
func (m *Run) fleet(seconds float64) (replicas, retried int, loads []ReplicaLoad) {
	if len(m.replicas) == 1 && m.retried == 0 {
		return 0, 0, nil
	}
	for i := range m.replicas {
		u := &m.replicas[i]
		l := ReplicaLoad{Requests: u.requests}
		if seconds > 0 {
			l.BusyShare = u.busy.Seconds() / seconds
		}
		if m.of.KVBytes > 0 {
			l.PeakKVUse = float64(u.hbm.peak) / float64(m.of.KVBytes)
		}
		loads = append(loads, l)
	}
	return len(m.replicas), m.retried, loads
}
