package calibrate

import (
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
)

// fits lists the fits of all costs, in the order of fitting: a fit may read figures of earlier
// costs. It writes the figures of its cost into the profile and returns the fitted models.
var fits = []func(s *Samples, p *hw.Profile, from source) []model{
	fitLink, fitMoving, fitSwapIn, fitOverlap, fitFlashD2H, fitGemm, fitElementwise,
	fitPrefillAttention, fitSparsePrefill, fitDecode, fitSharedDecode, fitContinueLatency, fitClock,
}

// Shapes for attention: one with as many KV heads as query heads, and one with grouped queries.
var shapes = []string{"llama2-7b", "llama3-8b"}

// manyQueries is a shape with eight query heads per KV head, the maximum of the built-in models. It
// is measured at some points of decode and selection.
const manyQueries = "yi-9b-200k"

// otherLinears are more shapes whose linears are measured: with shapes, from the smallest to the
// largest built-in model of 4 to 9 billion parameters. Other shapes are scaled from the nearest.
var otherLinears = []string{"phi3-mini-128k", "qwen2-7b", manyQueries}

// shapeModel returns the model of a shape.
func shapeModel(name string) (*llm.Model, error) {
	m, err := llm.Load(name)
	if err != nil {
		return nil, err
	}
	return &m, nil
}
