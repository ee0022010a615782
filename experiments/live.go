package experiments

import (
	"context"
	"errors"
	"fmt"

	"sparseserve/cuda/live"
	"sparseserve/cuda/weights"
	"sparseserve/hw"
	"sparseserve/sim"
)

// Live runs points on a machine that computes: the same trace, scheduler and
// cache as Simulator, with measured time. Every head is served. One point at a
// time.
type Live struct {
	Simulator *Simulator
	// On runs f on the thread that the machine wants.
	On func(f func(live.Machine) error) error
	// Weights is a folder of safetensors with its config.json; empty draws them.
	Weights string
	// SplitEvery says which steps are split into phases: each n-th; 0 is none.
	SplitEvery int64
	// Did is told what the device has done in a run; it may be nil.
	Did func(Point, live.Counters)
}

// Run carries out one point. It is a Runner.
func (l *Live) Run(ctx context.Context, p Point, sink Sink) (sim.Summary, error) {
	return l.run(ctx, p, sink, func(d sim.Device) sim.Device { return d })
}

// Shadowed is Run that writes down what each step asked of the device.
func (l *Live) Shadowed(ctx context.Context, p Point, sink Sink) (sim.Summary, []live.ShadowStep, error) {
	var shadow live.Shadow
	sum, err := l.run(ctx, p, sink, func(d sim.Device) sim.Device {
		shadow.Real = d
		return &shadow
	})
	return sum, shadow.Steps, err
}

// Device names the machine.
func (l *Live) Device() (name string, err error) {
	err = l.On(func(m live.Machine) error {
		info, err := m.Device()
		name = info.Name
		return err
	})
	return name, err
}

// run carries out one point on what wrap makes of the device.
func (l *Live) run(ctx context.Context, p Point, sink Sink, wrap func(sim.Device) sim.Device) (sum sim.Summary, err error) {
	p.System.Heads = "full"
	s, err := l.Simulator.prepare(&p)
	if err != nil {
		return sim.Summary{}, err
	}
	defer s.stream.Close()
	source, err := l.source(&s.model, p.Seed)
	if err != nil {
		return sim.Summary{}, err
	}
	err = l.On(func(m live.Machine) (err error) {
		device, err := live.New(m, live.Config{
			Spec: &s.point.System, Geometry: s.server.Geometry, Weights: source, KVBytes: s.server.HBMBytes, Seed: p.Seed, SplitEvery: l.SplitEvery,
		})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, device.Close()) }()
		s.server.Device, s.server.Detail = wrap(device), true
		sum, err = s.serve(ctx, sink, func(*sim.Metrics) []string { return nil })
		if err == nil && l.Did != nil {
			l.Did(p, device.Counters())
		}
		return err
	})
	if c, ok := source.(interface{ Close() error }); ok {
		err = errors.Join(err, c.Close())
	}
	return sum, err
}

// source returns the weights of a model.
func (l *Live) source(m *hw.Model, seed uint64) (weights.Source, error) {
	shape := weights.Config{
		Layers: m.Layers, Hidden: m.Hidden, HeadsQ: m.QHeads, HeadsKV: m.KVHeads, HeadDim: m.HeadDim, FFN: m.FFN, Vocab: m.Vocab,
		MaxContext: m.MaxContext, Tied: m.TiedEmbeddings,
	}
	if m.QKVBias {
		return nil, fmt.Errorf("%s has biases in its attention; live execution runs Llama-architecture models, which have none", m.Name)
	}
	if l.Weights == "" {
		return weights.NewRandom(shape, seed)
	}
	folder, err := weights.Open(l.Weights)
	if err != nil {
		return nil, err
	}
	got := folder.Config()
	if got.Layers != shape.Layers || got.Hidden != shape.Hidden || got.HeadsQ != shape.HeadsQ || got.HeadsKV != shape.HeadsKV || got.FFN != shape.FFN || got.Vocab != shape.Vocab {
		return nil, errors.Join(fmt.Errorf("%s: the weights are not those of model %s; set model to the same folder", l.Weights, m.Name), folder.Close())
	}
	return folder, nil
}
