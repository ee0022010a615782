package calibrate

import (
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
)

// slice is one calibrated part of the cost model: its sizes, and the fit of its figures. Each is in
// a file of its name; its prediction is in the file of the same name in package cost.
type slice interface {
	// points adds its sizes to a plan.
	points(p *planner)
	// fit writes its figures into the profile and returns the fitted models.
	fit(s *Samples, p *hw.Profile, from source) []model
}

// costs lists all costs in the order of fitting: a fit may read figures of earlier costs.
var costs = []slice{
	link{}, moving{}, swapIn{}, overlap{}, flashD2H{}, gemm{}, elementwise{}, prefillAttention{},
	sparsePrefill{}, decode{}, sharedDecode{}, continueLatency{}, clock{},
}

// Shapes for attention: one with as many KV heads as query heads, and one with grouped queries.
var shapes = []string{"llama2-7b", "llama3-8b"}

// manyQueries is a shape with eight query heads per KV head, the maximum of the built-in models. It
// is measured at some points of decode and selection.
const manyQueries = "yi-9b-200k"

// shapeModel returns the model of a shape.
func shapeModel(name string) (*llm.Model, error) {
	m, err := llm.Load(name)
	if err != nil {
		return nil, err
	}
	return &m, nil
}
