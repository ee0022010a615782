package metrics

import (
	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/sim/des"
)

// Distribution accumulates durations.
type Distribution struct {
	sum     float64
	n       int64
	samples stats.Counts // nanoseconds
}

func (d *Distribution) add(t des.Time) { d.addMany(t, 1) }

// addMany adds a duration n times, with the same rounding as n calls of add.
func (d *Distribution) addMany(t des.Time, n int) {
	seconds := t.Seconds()
	for range n {
		d.sum += seconds
	}
	d.n += int64(n)
	d.samples.Add(int64(t), n)
}

// Stats returns mean and percentiles in seconds, or zeros when nothing was added.
func (d *Distribution) Stats() Stats {
	if d.n == 0 {
		return Stats{}
	}
	p := d.samples.Percentiles(50, 90, 95, 99)
	for i := range p {
		p[i] /= float64(des.Second)
	}
	return Stats{Mean: d.sum / float64(d.n), P50: p[0], P90: p[1], P95: p[2], P99: p[3]}
}
