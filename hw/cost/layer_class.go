package cost

import (
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
)

// layerClass is the set of optional features of a layer. Layers of the same class cost the same.
type layerClass struct {
	routed bool // experts
	fused  bool // the shared expert is one of them
	window bool
	index  bool // an indexer of its own
}

// classOf returns the class of a layer.
func classOf(m *llm.Model, layer int) layerClass {
	return layerClass{routed: m.RoutesLayer(layer), window: m.IsWindowed() && m.HasWindow(layer),
		index: m.IsIndexed() && !m.SharesIndex(layer)}
}

// setClass replaces the parts of the price that depend on the class.
func (c *coster) setClass(p *hw.Profile, m *llm.Model, class layerClass, blockTokens int) {
	if class.routed {
		c.experts = newExperts(p, m)
		class.fused = c.experts.fused
	}
	c.class = class
	all := matricesOf(m, class)
	c.linears = newGEMMOf(p, m, all, m.WeightBytesEach)
	c.pointwise = newElementwiseOf(p, pointwiseBytes(m, class))
	c.qkv = float64(m.AttentionLinears()-outputLinears(m)) / float64(llm.WeightsOf(all))
	if class.index {
		c.indexer = newIndexer(p, m, blockTokens)
	}
	c.selected = newSelected(p, m)
	switch {
	case m.IsLatent():
		c.prefill = newLatentPrefill(p, m)
		c.latent = newLatentDecode(p, m, p.DenseDecode)
		if m.IsIndexed() {
			c.latent = newLatentDecode(p, m, p.SparseDecode)
		}
	case class.window:
		c.prefill.window = float64(m.WindowTokens)
	}
	c.patterns.dense = c.prefill
	c.bounded = class.window || m.IsIndexed()
}

// outputLinears returns the number of weights of attention's output.
func outputLinears(m *llm.Model) int64 {
	each := m.HeadDim
	if m.IsLatent() {
		each = m.ValueDim
	}
	return int64(m.QHeads*each) * int64(m.Hidden)
}

// newClasses returns the costs of each layer, or nil for a plain model. Layers of the same class
// share them.
func newClasses(p *hw.Profile, m *llm.Model, first *coster, opts *DeviceOptions) []*coster {
	if m.Plain() {
		return nil
	}
	of := map[layerClass]*coster{}
	layers := make([]*coster, m.Layers)
	for i := range layers {
		class := classOf(m, i)
		if of[class] == nil {
			c := *first
			c.setClass(p, m, class, opts.BlockTokens)
			of[class] = &c
		}
		layers[i] = of[class]
	}
	return layers
}

// matricesOf returns the matrices of a layer of class c, without routed experts.
func matricesOf(m *llm.Model, c layerClass) []llm.Matrix {
	all := m.AttentionMatrices()
	if c.index {
		all = append(all, m.IndexerMatrices()...)
	}
	switch {
	case !c.routed:
		return append(all, m.FFNMatrices(m.FFN)...)
	case m.SharedExperts > 0 && !c.fused:
		all = append(all, m.FFNMatrices(m.SharedExperts*m.ExpertFFN/m.Spread())...)
	}
	return append(all, llm.Matrix{Rows: m.Hidden, Columns: m.Experts}) // the router
}
