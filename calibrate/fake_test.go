package calibrate

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/sparseserve/sparseserve/hw/llm"
)

// fakeBench answers with the times of a machine, times noise.
type fakeBench struct {
	truth    *machine
	noise    float64 // standard deviation of log seconds
	seed     uint64
	prepared []string // keys
	fail     func(Point) error
	bend     func(Point) float64 // factor on a point's time; nil: none
	models   map[string]*llm.Model
}

func newFake(truth *machine, noise float64, seed uint64) *fakeBench {
	models := map[string]*llm.Model{}
	for _, shape := range slices.Concat(shapes, otherLinears) {
		m, err := shapeModel(shape)
		must(err)
		models[shape] = m
	}
	return &fakeBench{truth: truth, noise: noise, seed: seed, models: models}
}

func (f *fakeBench) Prepare(p Point) (Timed, error) {
	f.prepared = append(f.prepared, p.Key())
	if f.fail != nil {
		if err := f.fail(p); err != nil {
			return nil, err
		}
	}
	exact := f.truth.seconds(p, f.models[p.Shape])
	if f.bend != nil {
		exact *= f.bend(p)
	}
	r := rand.New(rand.NewPCG(f.seed, hash(p.Key()))) // whatever else is measured
	noise := f.noise * f.quiet(p)
	return func(warmup, repeats int) ([]float64, error) {
		samples := make([]float64, repeats)
		for i := range samples {
			samples[i] = exact * math.Exp(noise*r.NormFloat64())
		}
		return samples, nil
	}, nil
}

// quiet is the factor on the noise of a probe's samples. Samples of the clock are means over rounds
// of layers, so they have less noise.
func (f *fakeBench) quiet(p Point) float64 {
	switch {
	case probeOf(p.Probe).fixed == clockSamples, p.Probe == probeLinears, p.Probe == probeChunk:
		return 1 / math.Sqrt(clockRounds/clockSamples*clockLayers)
	}
	return 1
}
