package hw

import (
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// latencies are the parts of a layer's decode kernels that scale with the SM clock, not with HBM
// bandwidth: launch, end, merge, and synchronisation in rounds of progressive attention. At a share
// f of the full clock each takes 1/f times as long. HBM has its own clock.
type latencies struct{ linears, dense, sparse, scoring, choice des.Time }

// setLatencies computes the latencies of w from the layer's cost l.
func (c *coster) setLatencies(w *sim.Work, l *layerCost) {
	of := &l.latencies
	of.dense, of.sparse = c.dense.latency(w, l.dense), c.sparse.latency(w, l.sparse)
	of.scoring = c.scoring.latency(w, l.scoring)
	if len(w.Prefill) == 0 { // otherwise they are in the chunk's price
		of.linears = min(l.linears, nanoseconds(c.linears.launch+c.pointwise.launch()))
		if c.experts != nil {
			of.linears = min(l.linears, of.linears+nanoseconds(c.experts.launch))
		}
	}
	if c.indexer != nil {
		launch := nanoseconds(c.indexer.launch)
		of.scoring, of.choice = min(l.scoring, launch), min(l.choice, launch)
	}
	switch {
	case c.latent != nil:
		launch := nanoseconds(c.latent.launch)
		of.dense, of.sparse = min(l.dense, launch), min(l.sparse, launch)
	case c.bounded:
		of.dense = min(l.dense, nanoseconds(c.dense.launch))
	}
}

// latency returns the part of t that is not HBM bytes at the kernel's rate.
func (k *memoryBound) latency(w *sim.Work, t des.Time) des.Time {
	if t == 0 {
		return 0
	}
	return max(0, t-nanoseconds(float64(k.items(w))*k.bytesEach/k.rate))
}

// full reports whether the clock is full and stays full while no chunk runs.
func (c *clock) full() bool { return c.filter == 0 || c.f == 1 && c.measured <= 1 }

// lost returns the extra time of latencies at the present clock, relative to their time at the
// full clock.
func (c *clock) lost(now des.Time) float64 {
	if c.full() {
		return 0
	}
	if float64(now-c.at) > finest*c.filter {
		c.rested(now)
	}
	return 1/c.f - 1
}

// slowed returns a latency's time at the present clock.
func (d *Device) slowed(latency des.Time) des.Time {
	if lost := d.clock.lost(d.now); lost > 0 {
		latency += des.Time(lost * float64(latency))
	}
	return latency
}

// attend passes the time of decode attention or scoring, which takes t at the full clock. Only the
// latency depends on the clock.
func (d *Device) attend(t, latency des.Time, phase *des.Time) {
	if t == 0 && d.clock.full() {
		return
	}
	slowed, before := d.slowed(latency), d.now
	d.compute(t-latency+slowed, phase)
	d.clock.ran += d.now - before - slowed
}
