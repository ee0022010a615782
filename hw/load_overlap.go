package hw

import (
	"slices"

	"github.com/sparseserve/sparseserve/sim/des"
)

// loadOverlap models the interference of a gather kernel, which loads the next layer's prefixes,
// with the layer that is computed meanwhile. The kernel loses part of its speed. The layer takes
// longer, because the GPU reads its launches over the link that the kernel fills, about 5 us per
// launch on an H100, and because linears whose CTAs just fill the SMs need another wave with two
// SMs fewer. The round trip of its decodes takes longer too, because each read of host memory waits
// in the same queue.
type loadOverlap struct {
	share float64 // of the kernel's speed
	// delay is the extra time of a layer by rows of its linears while a kernel loads throughout the
	// layer, s. It is interpolated linearly for the model's own shape: constant below the first
	// point, and in proportion beyond the last, where the MLP runs in slices. Other shapes use
	// median.
	delay  curve
	median float64
	trip   float64 // extra time of a round trip, ns
}

func newLoadOverlap(p *Profile, m *Model) (o loadOverlap) {
	rows := p.Load.LayerDelay
	o.share = p.Load.Contention.optional()
	o.trip = p.Load.TripDelay.optional() * float64(des.Second)
	shape := p.nearestShape(m, len(rows), func(i int) string { return rows[i].Shape })
	if shape != "" && p.shape(shape).matches(m) {
		o.delay = tokenCurve(rows, shape)
	}
	all := make([]float64, len(rows))
	for i := range rows {
		all[i] = rows[i].SI()
	}
	if slices.Sort(all); len(all) > 0 {
		o.median = all[len(all)/2]
	}
	return o
}

// of returns the extra time of a load of time t, and of a layer with the given rows that takes w
// and then a round trip of time r. Load and layer begin together. The load is slowed while both
// run. If the load overlapped with all of the layer and the round trip, they would take D and R
// longer; each is slowed in proportion until the load ends:
//
//	load   T - t,  T = t + min(t, w + r) share / (1 - share)
//	layer  d = D min(1, T / (w + D))
//	trip   R min(1, (T - w - d) / (r + R)), at least 0
func (o *loadOverlap) of(t, w, r des.Time, rows int) (load, layer des.Time) {
	if w == 0 {
		return 0, 0
	}
	load = des.Time(o.share / (1 - o.share) * float64(min(t, w+r)))
	delay := o.median
	if len(o.delay.x) > 0 {
		delay, _ = o.delay.cost(float64(rows))
	}
	delay *= float64(des.Second)
	left := float64(t + load)
	d := delay * min(1, left/(float64(w)+delay))
	if left -= float64(w) + d; r > 0 && left > 0 {
		d += o.trip * min(1, left/(float64(r)+o.trip))
	}
	return load, des.Time(d)
}
