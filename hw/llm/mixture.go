package llm

import (
	"math"
)

// Mixture is a mixture of experts: a router sends each token to some of a layer's FFNs.
type Mixture struct {
	// Experts is the number of routed experts; 0: one FFN per layer.
	Experts         int `toml:"experts" json:",omitempty" range:">= 0, <= 16384"`
	ExpertsPerToken int `toml:"experts_per_token" json:",omitempty" with:"experts" range:">= 1, <= experts"`
	// SharedExperts serve every token. ExpertFFN is the size of one expert.
	SharedExperts int `toml:"shared_experts" json:",omitempty" with:"experts" range:">= 0, <= 1024"`
	ExpertFFN     int `toml:"expert_ffn" json:",omitempty" with:"experts" range:">= 1, <= 4194304"`
	// DenseLayers is the number of first layers with one FFN.
	DenseLayers int `toml:"dense_layers" json:",omitempty" with:"experts" range:">= 0, <= layers"`
	// ExpertBytesEach is the bytes per expert weight; 0: weight_bytes_each. MXFP4 has 0.53125: 4
	// bits, and 8 bits of scale per 32 weights.
	ExpertBytesEach float64 `toml:"expert_bytes_each" json:",omitempty" with:"experts" range:">= 0, <= 8"`
}

// IsMixture reports whether there are layers with experts.
func (m *Model) IsMixture() bool { return m.Experts > 0 }

// RoutesLayer reports whether a layer has experts.
func (m *Model) RoutesLayer(layer int) bool { return m.IsMixture() && layer >= m.DenseLayers }

// OwnFFNs returns the number of layers with one FFN for all tokens.
func (m *Model) OwnFFNs() int {
	if m.IsMixture() {
		return m.DenseLayers
	}
	return m.Layers
}

// ExpertLinears returns the number of weights of one expert: gate, up, down.
func (m *Model) ExpertLinears() int64 { return 3 * int64(m.Hidden) * int64(m.ExpertFFN) }

// ExpertBytes returns the bytes per weight of an expert.
func (m *Model) ExpertBytes() float64 {
	if m.ExpertBytesEach > 0 {
		return m.ExpertBytesEach
	}
	return m.WeightBytesEach
}

// mixtureWeightBytes returns the bytes of one layer's experts and router.
func (m *Model) mixtureWeightBytes() int64 {
	routed := float64(int64(m.Experts/m.Spread())*m.ExpertLinears()) * m.ExpertBytes()
	shared := float64(m.sharedLinears()) * m.ExpertBytes()
	return int64(math.Ceil(routed+shared)) + int64(m.Hidden)*int64(m.Experts)*m.WideBytes()
}

// sharedLinears returns the number of weights of one layer's shared experts, which are split over
// all ranks.
func (m *Model) sharedLinears() int64 {
	return int64(m.SharedExperts) * m.ExpertLinears() / int64(m.Spread())
}

// ExpertColumns returns the FFN columns that a token passes on a rank: its routed experts, spread
// over ranks, and the shared experts.
func (m *Model) ExpertColumns() int {
	return (m.ExpertsPerToken + m.SharedExperts) * m.ExpertFFN / m.Spread()
}

// ActiveWeights returns the number of weights that a token is multiplied with: all attention, its
// experts or FFN, and the LM head; without MTP layers.
func (m *Model) ActiveWeights() int64 {
	layers, own := int64(m.Layers), int64(m.OwnFFNs())
	routed := int64(m.ExpertsPerToken+m.SharedExperts)*m.ExpertLinears() +
		int64(m.Hidden)*int64(m.Experts)
	return layers*m.AttentionLinears() + int64(m.Indexers())*m.IndexerLinears() +
		own*3*int64(m.Hidden)*int64(m.FFN) + (layers-own)*routed +
		int64(m.Vocab)*int64(m.Hidden)
}
