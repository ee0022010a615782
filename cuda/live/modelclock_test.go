package live_test

import (
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// modelClock lets a real device do the work while a modelled one gives the time: the batches, and
// so every selection, miss and eviction, equal the simulation's.
type modelClock struct {
	Real, Model sim.Device
}

// Begin implements sim.Device, as the other methods do: both devices are called, the model answers.
func (f *modelClock) Begin(s *sim.Step) error {
	if err := f.Real.Begin(s); err != nil {
		return err
	}
	return f.Model.Begin(s)
}

func (f *modelClock) Score(layer int, w *sim.Work) error {
	if err := f.Real.Score(layer, w); err != nil {
		return err
	}
	return f.Model.Score(layer, w)
}

func (f *modelClock) Move(m *kv.Moves) error {
	if err := f.Real.Move(m); err != nil {
		return err
	}
	return f.Model.Move(m)
}

func (f *modelClock) Compute(layer int, w *sim.Work) error {
	if err := f.Real.Compute(layer, w); err != nil {
		return err
	}
	return f.Model.Compute(layer, w)
}

func (f *modelClock) Finish() (metrics.Timing, error) {
	if _, err := f.Real.Finish(); err != nil {
		return metrics.Timing{}, err
	}
	return f.Model.Finish()
}

func (f *modelClock) Drain() (des.Time, error) {
	if _, err := f.Real.Drain(); err != nil {
		return 0, err
	}
	return f.Model.Drain()
}
