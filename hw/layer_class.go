package hw

// layerClass is the set of optional features of a layer. Layers of the same class cost the same.
type layerClass struct {
	routed bool // experts
	window bool
	index  bool // an indexer of its own
}

// classOf returns the class of a layer.
func (m *Model) classOf(layer int) layerClass {
	return layerClass{routed: m.RoutesLayer(layer), window: m.IsWindowed() && m.HasWindow(layer),
		index: m.IsIndexed() && !m.SharesIndex(layer)}
}

// BoundTokens returns the most tokens that a decode attends to in bounded layers: an indexer's
// selection, or a window; 0: no layer is bounded.
func (m *Model) BoundTokens() int {
	if m.IsIndexed() {
		return m.IndexTopK
	}
	return m.WindowTokens
}

// setClass replaces the parts of the price that depend on the class.
func (c *coster) setClass(p *Profile, m *Model, class layerClass, blockTokens int) {
	c.class = class
	all := m.matricesOf(class)
	c.linears = newGEMMOf(p, m, all, m.WeightBytesEach)
	c.pointwise = newElementwiseOf(p, pointwiseBytes(m, class))
	c.qkv = float64(m.AttentionLinears()-m.outputLinears()) / float64(weightsOf(all))
	if class.routed {
		c.experts = newExperts(p, m)
	}
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
func (m *Model) outputLinears() int64 {
	each := m.HeadDim
	if m.IsLatent() {
		each = m.ValueDim
	}
	return int64(m.QHeads*each) * int64(m.Hidden)
}

// newClasses returns the costs of each layer, or nil for a plain model. Layers of the same class
// share them.
func newClasses(p *Profile, m *Model, first *coster, opts *DeviceOptions) []*coster {
	if m.Plain() {
		return nil
	}
	of := map[layerClass]*coster{}
	layers := make([]*coster, m.Layers)
	for i := range layers {
		class := m.classOf(i)
		if of[class] == nil {
			c := *first
			c.setClass(p, m, class, opts.BlockTokens)
			of[class] = &c
		}
		layers[i] = of[class]
	}
	return layers
}
