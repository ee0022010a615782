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

// fit fits scores and top-k in one kernel (hw: stream), t = launch + bytes/rate of the digests.
func (scoring) fit(s *Samples, p *hw.Profile, from source) []model {
	const what = "scores and top-k in one kernel"
	fit, held := s.of(probeSelect).split(func(at observation) string { return at.Shape }, 3, nil)
	bytes := func(at observation) float64 {
		return lists(at) * float64(at.At("context_tokens")/blockTokens) *
			float64(at.model.MetaBytesPerBlock())
	}
	c := fitBytes(fit, bytes, p.GPU.HBMBandwidth.SI())
	p.Scoring = hw.Stream{Launch: from.us(c[0], what), Rate: from.gbps(c[1], what)}
	return []model{{name: "scoring", fit: fit, held: held,
		draw: picture{x: bytes, xLabel: "bytes", rate: bytes},
		price: func(p *hw.Profile, at observation) float64 {
			return hw.Seconds(p.Costs(at.model).Scoring,
				sim.Work{ScoredBlocks: at.At("batch") * (at.At("context_tokens") / blockTokens),
					Decodes: int(at.At("batch"))})
		}}}
}
