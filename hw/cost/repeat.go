package cost

import (
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// passed is a snapshot of the device state that identical layers without loads and saves advance
// linearly.
type passed struct {
	now, busy, launched des.Time
	phases              metrics.Phases
}

func (d *Device) passed() passed {
	return passed{d.now, d.busy, d.engine.launched, d.phases}
}

// Repeat implements sim.Repeater. If all layers have one class and neither saves nor the card's
// clock change a layer's time, it multiplies the time of the first layer. Times are whole
// nanoseconds, so the sum is exact.
func (d *Device) Repeat(layer, n int, w *sim.Work) error {
	steady := d.classes == nil && d.saves.n == 0 && d.pending == 0 && !d.step.Prefix.ByLayer &&
		d.clock.standsStill(w)
	if !steady {
		for i := range n {
			if err := d.Compute(layer+i, w); err != nil {
				return err
			}
		}
		return nil
	}
	first, before := d.layers == 0, d.passed()
	if err := d.layer(layer, w); err != nil {
		return err
	}
	d.again(&before, n-1)
	if first {
		d.embed(w)
	}
	return nil
}

// Next implements sim.Repeater. It applies to a plain model if the card's clock does not change,
// nothing was saved or loaded, and the host planned both steps alike. Then only attention depends
// on context lengths, and all other times repeat.
func (d *Device) Next(s *sim.Step, w *sim.Work) (timing metrics.Timing, ok bool) {
	if d.running || d.classes != nil || d.loader != nil || d.saver != nil || !d.clock.standsStill(w) ||
		d.rested && d.engine.overlaps || len(w.Patterns) > 0 {
		return timing, false
	}
	c := &d.costs.cost
	prefill, dense := c.prefill, c.dense
	c.prefill, c.dense = nanoseconds(d.costs.chunksOf(w)), d.costs.contexts(w)
	prefill, dense = des.Time(d.layers)*(c.prefill-prefill), des.Time(d.layers)*(c.dense-dense)
	d.phases.PrefillAttention += prefill
	d.phases.DenseAttention += dense
	d.phases.Host -= d.lagged
	d.busy += prefill + dense
	d.now += d.now - d.step.Start - d.lagged + prefill + dense
	d.step.Index, d.step.Start = s.Index, s.Start
	return d.end(), true
}

// again repeats n times the progress since before.
func (d *Device) again(before *passed, n int) {
	times := des.Time(n)
	d.now += times * (d.now - before.now)
	d.busy += times * (d.busy - before.busy)
	d.engine.launched += times * (d.engine.launched - before.launched)
	d.phases.Repeat(&before.phases, times)
	d.layers += n
	d.saves.advance(d.now)
}
