package live

import (
	"fmt"
	"slices"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// CallRecorder records the calls of each step on a real device, so that a modelled device can price
// the same batches (Price). Pricing runs afterwards: between two calls the real device would
// measure it.
type CallRecorder struct {
	Real  sim.Device
	Steps []RecordedStep
}

// RecordedStep is the calls of one step, and its time.
type RecordedStep struct {
	Step   sim.Step // without rows
	Works  []sim.Work
	Layers []RecordedLayer
	Timing metrics.Timing
}

// RecordedLayer is one layer of a step: Score when Scored, Move when Moved, then Compute.
type RecordedLayer struct {
	Layer, Work   int // Work is an index of RecordedStep.Works
	Scored, Moved bool
	Moves         kv.Moves
}

// Begin implements sim.Device, as the other methods do: the real device answers.
func (s *CallRecorder) Begin(step *sim.Step) error {
	n := RecordedStep{Step: *step, Works: make([]sim.Work, 0, 1)}
	n.Step.Rows, n.Step.Dropped = nil, nil
	if last := len(s.Steps) - 1; last >= 0 {
		n.Layers = make([]RecordedLayer, 0, len(s.Steps[last].Layers))
	}
	s.Steps = append(s.Steps, n)
	return s.Real.Begin(step)
}

func (s *CallRecorder) Score(layer int, w *sim.Work) error {
	s.layer(layer).Scored = true
	return s.Real.Score(layer, w)
}

func (s *CallRecorder) Move(m *kv.Moves) error {
	l := s.layer(m.Layer)
	l.Moved, l.Moves = true, *m
	l.Moves.LoadRefs = nil
	return s.Real.Move(m)
}

func (s *CallRecorder) Compute(layer int, w *sim.Work) error {
	l, step := s.layer(layer), &s.Steps[len(s.Steps)-1]
	if n := len(step.Works); n == 0 || !step.Works[n-1].SameBatch(w) ||
		!slices.Equal(step.Works[n-1].Rounds, w.Rounds) {
		own := *w
		own.Prefill, own.Rounds = slices.Clone(w.Prefill), slices.Clone(w.Rounds)
		own.Lists, own.Tables = nil, nil
		step.Works = append(step.Works, own)
	}
	l.Work = len(step.Works) - 1
	return s.Real.Compute(layer, w)
}

func (s *CallRecorder) Finish() (metrics.Timing, error) {
	t, err := s.Real.Finish()
	s.Steps[len(s.Steps)-1].Timing = t
	return t, err
}

func (s *CallRecorder) Drain() (des.Time, error) { return s.Real.Drain() }

// layer returns the record of the current layer.
func (s *CallRecorder) layer(layer int) *RecordedLayer {
	step := &s.Steps[len(s.Steps)-1]
	if n := len(step.Layers); n == 0 || step.Layers[n-1].Layer != layer {
		step.Layers = append(step.Layers, RecordedLayer{Layer: layer})
	}
	return &step.Layers[len(step.Layers)-1]
}

// Price returns the modelled device's time of each step. The model has its own clock, because its
// steps have other durations; the time between two steps is kept.
func Price(steps []RecordedStep, model sim.Device) ([]metrics.Timing, error) {
	out := make([]metrics.Timing, len(steps))
	var now des.Time
	for i := range steps {
		s := &steps[i]
		if now += s.Step.Start; i > 0 {
			now -= steps[i-1].Step.Start + steps[i-1].Timing.Elapsed
		}
		t, err := s.price(model, now)
		if err != nil {
			return nil, fmt.Errorf("price of step %d: %w", s.Step.Index, err)
		}
		out[i] = t
		now += t.Elapsed
	}
	return out, nil
}

func (s *RecordedStep) price(model sim.Device, start des.Time) (t metrics.Timing, err error) {
	step := s.Step
	step.Start = start
	if err = model.Begin(&step); err != nil {
		return t, err
	}
	for i := range s.Layers {
		l := &s.Layers[i]
		w := s.Works[l.Work]
		if l.Scored {
			if err = model.Score(l.Layer, &w); err != nil {
				return t, err
			}
		}
		if l.Moved {
			moves := l.Moves
			if err = model.Move(&moves); err != nil {
				return t, err
			}
		}
		if err = model.Compute(l.Layer, &w); err != nil {
			return t, err
		}
	}
	return model.Finish()
}
