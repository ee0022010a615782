package sim

import (
	"math"

	"github.com/sparseserve/sparseserve/sim/des"
)

// replicaUse is what one replica did. A server by itself is the only one.
type replicaUse struct {
	uses
	requests int // served to their end
	busy     des.Time
}

// step adds a step of the replica.
func (u *replicaUse) step(r *StepRecord) {
	u.busy += r.Timing.Elapsed
	u.within(r, math.MinInt64, math.MaxInt64)
}

// ReplicaLoad is what a run of a fleet made of one replica.
type ReplicaLoad struct {
	Requests  int     `json:"requests"`    // that it served to their end
	BusyShare float64 `json:"busy_share"`  // of the time, with a step that was finished
	PeakKVUse float64 `json:"peak_kv_use"` // share of what is there for KV in HBM
}

// uses returns the mean over replicas, and the peak of any, over a run of so many seconds.
func (m *Metrics) uses(seconds float64) Uses {
	all := m.replicas[0].uses
	for i := range m.replicas[1:] {
		all.join(&m.replicas[1+i].uses)
	}
	return all.of(&m.capacity, m.offload, m.tiers, seconds*float64(len(m.replicas)))
}

// join adds what another replica used in the same time.
func (u *uses) join(o *uses) {
	for _, h := range []struct{ into, from *held }{{&u.hbm, &o.hbm}, {&u.dram, &o.dram},
		{&u.batch, &o.batch}, {&u.room, &o.room}} {
		h.into.byteSeconds += h.from.byteSeconds
		h.into.peak = max(h.into.peak, h.from.peak)
	}
	for _, w := range []struct{ into, from *worked }{{&u.gpu, &o.gpu}, {&u.h2d, &o.h2d},
		{&u.d2h, &o.d2h}} {
		w.into.busy += w.from.busy
		w.into.peak = max(w.into.peak, w.from.peak)
	}
}

// fleet returns the figures that only fleets have: none of one replica that retried no request.
func (m *Metrics) fleet(seconds float64) (replicas, retried int, loads []ReplicaLoad) {
	if len(m.replicas) == 1 && m.retried == 0 {
		return 0, 0, nil
	}
	for i := range m.replicas {
		u := &m.replicas[i]
		l := ReplicaLoad{Requests: u.requests}
		if seconds > 0 {
			l.BusyShare = u.busy.Seconds() / seconds
		}
		if m.capacity.KV > 0 {
			l.PeakKVUse = float64(u.hbm.peak) / float64(m.capacity.KV)
		}
		loads = append(loads, l)
	}
	return len(m.replicas), m.retried, loads
}
