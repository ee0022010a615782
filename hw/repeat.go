package hw

import (
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// passed is what has passed of a step that layers without saves and loads add to.
type passed struct {
	now, busy, ran, launched des.Time
	phases                   sim.Phases
}

func (d *Device) passed() passed {
	return passed{d.now, d.busy, d.clock.ran, d.engine.launched, d.phases}
}

// Repeat implements sim.Repeater. Where layers are of one class and neither saves nor the card's
// clock change the time of a layer, those after the first pass as it did; times are whole
// nanoseconds, so the sum is the same.
func (d *Device) Repeat(layer, n int, w *sim.Work) error {
	steady := d.classes == nil && d.saves.n == 0 && d.pending == 0 && !d.step.Prefix.ByLayer &&
		(d.clock.full() && len(w.Prefill) == 0 || d.clock.filter == 0)
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

// again has n times as much pass as since before.
func (d *Device) again(before *passed, n int) {
	times := des.Time(n)
	d.now += times * (d.now - before.now)
	d.busy += times * (d.busy - before.busy)
	d.clock.ran += times * (d.clock.ran - before.ran)
	d.engine.launched += times * (d.engine.launched - before.launched)
	d.phases.Repeat(&before.phases, times)
	d.layers += n
	d.saves.advance(d.now)
}
