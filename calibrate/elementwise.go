package calibrate

import (
	"slices"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
)

// elementwise is what one layer has except matrices and attention.
type elementwise struct{}

const (
	probePointwise = "pointwise"
	probeInPlace   = "pointwise.in_place"
)

func (elementwise) probes() []Probe {
	return []Probe{{Name: probePointwise, setup: (*gpuRun).setupPointwise,
		Means: "what one layer has except linears and attention: two norms with their residual sums, " +
			"rope with the write of K and V to their blocks, " +
			"silu(gate) up; " + gpuTime,
		Axes: []string{"tokens"}, shaped: true, needed: true},
		{Name: probeInPlace, serve: (*gpuBench).prepareInPlace,
			Means: "the same between the linears of their layer, each reading what the one before it " +
				"wrote: GPU time of a layer of both, some times over after decodes, less that of its " +
				"linears alone",
			Axes: []string{"tokens"}, shaped: true, fixed: clockSamples}}
}

// inPlaceTokens are the most for which the kernels are measured between their linears: what they
// read is still in the L2, or some of it. Of more tokens it would be a small difference of long
// times.
const inPlaceTokens = 1024

func (elementwise) points(p *planner) {
	for _, shape := range shapes {
		for _, n := range pick(p, []int64{1, 8, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384},
			[]int64{1, 256, 2048, 8192}) {
			p.add(stageElementwise, point(probePointwise, shape, n))
		}
		for _, n := range inPlaceSizes(p) {
			p.add(stageElementwise, point(probeInPlace, shape, n))
		}
	}
}

// inPlaceSizes are the tokens of layers that are measured after decodes.
func inPlaceSizes(p *planner) []int64 {
	return pick(p, onGrid(inPlaceTokens, 1, 8, 32), []int64{1, 128, 512, inPlaceTokens})
}

// fit keeps the measured points of each shape as they are, between which hw draws straight lines:
// those between linears as far as they go, then the kernels alone. Tokens of no power of two, whose
// linears may have kernels of their own, only judge.
func (elementwise) fit(s *Samples, p *hw.Profile, from source) (models []model) {
	alone, inPlace := s.of(probePointwise), s.of(probeInPlace)
	p.Pointwise = nil
	for _, shape := range alone.shapes() {
		points := inPlace.where(func(at observation) bool { return at.Shape == shape })
		most := int64(0)
		if sizes := points.values("tokens"); len(sizes) > 0 {
			most = sizes[len(sizes)-1]
		}
		points = append(points, alone.where(func(at observation) bool {
			return at.Shape == shape && at.At("tokens") > most
		})...)
		others := points.where(func(at observation) bool { return !powerOfTwo(at.At("tokens")) })
		points = points.where(func(at observation) bool { return powerOfTwo(at.At("tokens")) })
		m := splitCurve(points, "tokens")
		m.name, m.held = "pointwise."+shape, append(m.held, others...)
		m.why = "how much of what linears wrote is still in the L2 depends on their kernels"
		const what = "two norms, rope with the write of K and V, activation"
		kept := shapeRows(neverFalling(m.fit), shape, from, what)
		p.Pointwise = append(p.Pointwise, shapeRows(neverFalling(points), shape, from, what)...)
		m.price = func(p *hw.Profile, at observation) float64 {
			without := *p
			without.Pointwise = kept
			return hw.Seconds(without.Costs(at.model).Elementwise, sim.Work{Tokens: int(at.At("tokens"))})
		}
		models = append(models, m)
	}
	return models
}

// neverFalling are sorted points with the least change that lets none take less than one before:
// differences of two long times fall by what they are measured to.
func neverFalling(d data) data {
	seconds, weights := make([]float64, len(d)), make([]float64, len(d))
	for i, at := range d {
		seconds[i], weights[i] = at.seconds, 1
	}
	out := slices.Clone(d)
	for i, t := range rising(seconds, weights) {
		out[i].seconds = t
	}
	return out
}

func tokens(at observation) float64 { return float64(at.At("tokens")) }
