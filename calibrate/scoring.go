package calibrate

import (
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
)

// scoring is the kernel that scores block metadata and selects the top-k.
type scoring struct{}

const probeSelect = "scoring"

func (scoring) probes() []Probe {
	return []Probe{{Name: probeSelect, setup: (*gpuRun).setupSelect,
		Means: "scores and top-k, L2 flushed; " + gpuTime,
		Axes:  []string{"batch", "context_tokens", "budget_tokens"}, shaped: true, needed: true}}
}

// selectBudget is the number of tokens selected from every context.
const selectBudget = 2048

func (scoring) points(p *planner) {
	p.eachBatch(func(shape string, batch int64, at func(order int, p Point)) {
		for _, context := range pick(p, []int64{4096, 8192, 16384, 32768, 65536}, []int64{8192, 32768}) {
			at(orderSelection, point(probeSelect, shape, batch, context, selectBudget))
		}
	})
	p.eachGroupedBatch(func(batch int64, at func(order int, p Point)) {
		for i, context := range groupedContexts {
			at(2*i+1, point(probeSelect, manyQueries, batch, context, selectBudget))
		}
	})
}

// fit fits scores and top-k in one kernel (hw: stream), t = launch + bytes/rate of the digests. If
// the samples have the number of SMs, it also fits the searches and unclustered lists.
func (scoring) fit(s *Samples, p *hw.Profile, from source) []model {
	const what = "scores and top-k in one kernel"
	fit, held := s.of(probeSelect).split(func(at observation) string { return at.Shape }, 3, nil)
	bytes := func(at observation) float64 {
		return lists(at) * float64(at.At("context_tokens")/blockTokens) *
			float64(at.model.MetaBytesPerBlock())
	}
	hbm := p.GPU.HBMBandwidth.SI()
	start, bounds := []float64{10e-6, hbm / 2}, []bound{callBound, {rateBound.low, hbm}}
	ctas := ctasPerSM * s.sms()
	if ctas > 0 {
		start, bounds = append(start, 3e-6, 4e-6), append(bounds, blockBound, blockBound)
	}
	c := refine(fit, start, bounds, func(c []float64, at observation) float64 {
		t := c[0] + bytes(at)/c[1]
		if ctas > 0 {
			t += hw.ScoringSearches(float64(at.At("context_tokens")/blockTokens))*c[2] +
				hw.UnclusteredScoring(ctas, lists(at))*c[3]
		}
		return t
	})
	p.Scoring = hw.Stream{
		Launch: from.us(c[0], what), Rate: from.gbps(c[1], what),
	}
	if ctas > 0 {
		p.Scoring.Search = from.us(c[2],
			what+", the search of a list of more blocks than are ranked at once")
		p.Scoring.Unclustered = from.us(c[3], what+", of lists that no cluster of CTAs shares")
	}
	return []model{{name: "scoring", fit: fit, held: held,
		draw: picture{x: bytes, xLabel: "bytes", rate: bytes},
		price: func(p *hw.Profile, at observation) float64 {
			return hw.Seconds(p.Costs(at.model).Scoring,
				sim.Work{ScoredBlocks: at.At("batch") * (at.At("context_tokens") / blockTokens),
					Decodes: int(at.At("batch"))})
		}}}
}
