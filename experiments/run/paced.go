package run

import (
	"math"

	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// paced is a modelled device whose steps, loads and saves take their time multiplied by a factor.
type paced struct {
	*cost.Device
	factor        float64
	server, clock des.Time // one moment, by the server's clock and by the device's
}

// longer converts a span of the device's clock to the server's clock.
func (d *paced) longer(t des.Time) des.Time { return des.Time(math.Round(float64(t) * d.factor)) }

// at converts a time of the server's clock to the device's clock.
func (d *paced) at(t des.Time) des.Time {
	return d.clock + des.Time(math.Round(float64(t-d.server)/d.factor))
}

// Begin implements sim.Device.
func (d *paced) Begin(s *sim.Step) error {
	step := *s
	step.Start = d.at(s.Start)
	d.server, d.clock = s.Start, step.Start
	return d.Device.Begin(&step)
}

// Finish implements sim.Device.
func (d *paced) Finish() (metrics.Timing, error) {
	t, err := d.Device.Finish()
	return d.timing(t), err
}

// timing converts a step's timing to the server's clock. Phases stay as on the device; the
// difference counts as unsplit time.
func (d *paced) timing(t metrics.Timing) metrics.Timing {
	d.clock += t.Elapsed
	more := d.longer(t.Elapsed) - t.Elapsed
	t.Elapsed += more
	t.Phases.Unsplit += more
	d.server += t.Elapsed
	t.Busy = metrics.Busy{GPU: d.longer(t.Busy.GPU), H2D: d.longer(t.Busy.H2D),
		D2H: d.longer(t.Busy.D2H)}
	t.SavesDone = d.longer(t.SavesDone)
	return t
}

// Next implements sim.Repeater.
func (d *paced) Next(s *sim.Step, w *sim.Work) (metrics.Timing, bool) {
	step := *s
	step.Start = d.at(s.Start)
	t, ok := d.Device.Next(&step, w)
	if !ok {
		return t, false
	}
	d.server, d.clock = s.Start, step.Start
	return d.timing(t), true
}

// Drain implements sim.Device.
func (d *paced) Drain() (des.Time, error) {
	t, err := d.Device.Drain()
	return d.longer(t), err
}

// FetchPrefix implements sim.PrefixDevice.
func (d *paced) FetchPrefix(at des.Time, l sim.PrefixLoad) des.Time {
	return d.since(d.Device.FetchPrefix(d.at(at), l))
}

// SavePrefix implements sim.PrefixDevice.
func (d *paced) SavePrefix(at des.Time, bytes, ssd int64) (dram, onSSD des.Time) {
	dram, onSSD = d.Device.SavePrefix(d.at(at), bytes, ssd)
	return d.since(dram), d.since(onSSD)
}

// since converts a time of the device's clock to the server's clock.
func (d *paced) since(t des.Time) des.Time { return d.server + d.longer(t-d.clock) }
