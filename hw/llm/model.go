package llm

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/internal/tomlfile"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// Model is the shape of one decoder-only transformer with gated FFN. Keys of absent features are 0:
// latent KV, indexer, experts, window, prediction beyond the next token.
type Model struct {
	Name       string `toml:"name" want:"a name"`
	Layers     int    `toml:"layers" range:">= 1, <= 4096"`
	Hidden     int    `toml:"hidden" range:">= 1, <= 262144"`
	QHeads     int    `toml:"q_heads" range:">= 1, <= 16384"`
	KVHeads    int    `toml:"kv_heads" range:">= 1, <= 16384"`
	HeadDim    int    `toml:"head_dim" range:">= 1, <= 16384"`
	FFN        int    `toml:"ffn" range:">= 1, <= 4194304"`
	Vocab      int    `toml:"vocab" range:">= 1, <= 16777216"`
	MaxContext int    `toml:"max_context" range:">= 1, <= 1073741824"` // tokens
	// Tokenizer is the tokenizer family of the traces' counts: llama2 or llama3; empty: unknown.
	Tokenizer string `toml:"tokenizer,omitempty" values:"llama2 llama3"`
	// TiedEmbeddings is set if the LM head shares the embedding's weights.
	TiedEmbeddings bool `toml:"tied_embeddings"`
	QKVBias        bool `toml:"qkv_bias"`
	// WeightBytesEach and KVBytesEach are bytes per weight, with its part of the scales, and per KV
	// element. If linears have fewer than two, norms, routers, embeddings and activations still have
	// two.
	WeightBytesEach float64 `toml:"weight_bytes_each" range:"> 0, <= 8"`
	KVBytesEach     int     `toml:"kv_bytes_each" range:">= 1, <= 8"`
	// WeightType is the type of narrow weights: int8, nvfp4, mxfp4, or, with arithmetic in 16 bits,
	// int8_wo and int4_wo; empty: FP8 at one byte, MXFP4 at 0.53125.
	WeightType string `toml:"weight_type,omitempty" json:",omitempty" values:"int4_wo int8 int8_wo mxfp4 nvfp4"`
	// WeightBlock is the number of FP8 weights in a row that share a scale (weight_block_size of
	// quantization_config); 0: one scale per matrix. The two have different kernels.
	WeightBlock int    `toml:"weight_block,omitempty" json:"-"`
	Source      string `toml:"source"`
	// Note tells a reader of results what is unusual in how the model is served; empty: nothing.
	Note string `toml:"-" json:"-"`
	// TopP is top_p of the model's generation_config.json; 0: none, so sampling does not sort the
	// logits. A run's configuration shows the consequence (system.sampling).
	TopP float64 `toml:"top_p,omitempty" json:"-"`

	Latent
	Indexer
	Mixture
	Window
	// MTPLayers is the number of layers that predict tokens beyond the next one, for speculation.
	MTPLayers int `toml:"mtp_layers" json:",omitempty" range:">= 0, <= layers"`

	// Drafts is set if the MTP layers are loaded and keep KV.
	Drafts bool `toml:"-" json:"-"`
	Ranks  int  `toml:"-" json:"-"` // GPUs that share each layer; 0 and 1: one has all (Shard)
	// ExpertRanks is the number of ranks that divide the experts; 0 and 1: each slices all experts.
	ExpertRanks int `toml:"-" json:"-"`
	sampled     int // logits that a shard draws tokens from
}

// Plain reports whether every layer has its own FFN and attends to keys and values of whole
// contexts. The project's own kernels run only plain models.
func (m *Model) Plain() bool { return m.Class() == "" }

// Class names the features that make a model more than plain, or of the given keys only; "" if
// there are none.
func (m *Model) Class(keys ...string) string {
	var of []string
	for _, c := range []struct {
		has  bool
		name string
	}{
		{m.IsLatent(), "latent attention (kv_lora_rank)"}, {m.IsIndexed(), "an indexer (index_top_k)"},
		{m.IsMixture(), "experts (experts)"}, {m.IsWindowed(), "sliding windows (window)"},
		{m.WeightBytesEach != 2, fmt.Sprintf("weights of %g bytes (weight_bytes_each)",
			m.WeightBytesEach)},
		{m.KVBytesEach != 2, fmt.Sprintf("KV of %d bytes (kv_bytes_each)", m.KVBytesEach)},
	} {
		key := strings.TrimSuffix(c.name[strings.LastIndexByte(c.name, '(')+1:], ")")
		if c.has && (len(keys) == 0 || slices.Contains(keys, key)) {
			of = append(of, c.name)
		}
	}
	return strings.Join(of, ", ")
}

// LayerLinears returns the number of weights in the linears of one layer with its own FFN: QKV or
// the projections of latent attention, attention output, gate and up, down.
func (m *Model) LayerLinears() int64 {
	return WeightsOf(m.LayerMatrices())
}

// AttentionLinears returns the number of weights in attention's linears.
func (m *Model) AttentionLinears() int64 { return WeightsOf(m.AttentionMatrices()) }

// LayerQKV returns the number of weights in the QKV linear.
func (m *Model) LayerQKV() int64 {
	return int64(m.Hidden) *
		int64((m.QHeads+2*m.KVHeads)*m.HeadDim)
}

// mostLayers bounds a model's layers.
const mostLayers = 1 << 12

// Parameters returns the number of weights without MTP layers.
func (m *Model) Parameters() int64 {
	alike := *m
	alike.WeightBytesEach, alike.ExpertBytesEach = 2, 0
	return alike.WeightBytes() / 2
}

// WideBytes returns the bytes per weight of tensors that are kept in at least 16 bits.
func (m *Model) WideBytes() int64 { return int64(math.Ceil(max(2, m.WeightBytesEach))) }

// LayerWeightBytes returns the mean bytes of one layer's weights, including norms and biases.
func (m *Model) LayerWeightBytes() int64 {
	return m.layersWeightBytes() / int64(m.Layers)
}

// layersWeightBytes returns the weight bytes of all layers.
func (m *Model) layersWeightBytes() (bytes int64) {
	dense := int64(m.OwnFFNs())
	layers := int64(m.Layers)
	narrow := layers*m.AttentionLinears() + dense*3*int64(m.Hidden)*int64(m.FFN)
	wide := layers * 2 * int64(m.Hidden)
	if m.QKVBias {
		narrow += layers * int64((m.QHeads+2*m.KVHeads)*m.HeadDim)
	}
	bytes = m.narrowBytes(narrow+int64(m.Indexers())*m.IndexerLinears()) + wide*m.WideBytes()
	return bytes + (layers-dense)*m.mixtureWeightBytes()
}

// narrowBytes returns the bytes of weights of linears.
func (m *Model) narrowBytes(weights int64) int64 {
	return int64(math.Ceil(float64(weights) * m.WeightBytesEach))
}

// WeightBytes returns the bytes of all weights without MTP layers.
func (m *Model) WeightBytes() int64 {
	table := int64(m.Vocab) * int64(m.Hidden)
	outside := table + int64(m.Hidden) // embedding, final norm
	if !m.TiedEmbeddings {
		outside += table
	}
	return m.layersWeightBytes() + outside*m.WideBytes()
}

// LayerKVBytesPerToken returns the KV bytes of one token in one layer, without an indexer's keys.
func (m *Model) LayerKVBytesPerToken() int64 {
	if m.IsLatent() {
		return m.latentRow()
	}
	return int64(2 * m.KVHeads * m.HeadDim * m.KVBytesEach)
}

// KVBytesPerToken returns the KV bytes of one token over all layers, including indexers' keys,
// while the token is within every layer's window.
func (m *Model) KVBytesPerToken() int64 {
	return int64(m.kvLayers())*m.LayerKVBytesPerToken() + m.IndexBytesPerToken()
}

// KVBytes returns the KV bytes of a context of the given tokens.
func (m *Model) KVBytes(tokens int) int64 {
	windowed, row := int64(m.WindowLayers()), m.LayerKVBytesPerToken()
	return int64(tokens)*(m.KVBytesPerToken()-windowed*row) +
		windowed*row*int64(min(tokens, max(m.WindowTokens, 1)))
}

// MetaBytesPerBlock returns the bytes of one block's selection metadata for
// one KV head: two vectors of the head's size (cuboid-mean digest, ArkVale).
func (m *Model) MetaBytesPerBlock() int64 {
	return int64(2 * m.HeadDim * m.KVBytesEach)
}

// Geometry returns the KV cache's shape for blocks of blockTokens tokens. Query heads that share a
// latent share one selection, so they count as one KV head. Its metadata are the indexer's keys,
// averaged over all layers.
func (m *Model) Geometry(blockTokens int) kv.Geometry {
	g := kv.Geometry{
		Layers:      m.kvLayers(),
		KVHeads:     m.KVHeads,
		BlockTokens: blockTokens,
		BlockBytes:  int64(blockTokens) * m.LayerKVBytesPerToken() / int64(m.KVHeads),
		MetaBytes:   m.MetaBytesPerBlock(),
	}
	if m.IsLatent() {
		keys := int64(blockTokens) * m.IndexBytesPerToken()
		g.MetaBytes = (keys + int64(m.Layers) - 1) / int64(m.Layers)
	}
	return g
}

// Counter returns the tokenizer that counts texts for the model. Without a Tokenizer it guesses
// from the vocabulary: Llama-2's has 32,000 tokens.
func (m *Model) Counter() string {
	switch {
	case m.Tokenizer != "":
		return m.Tokenizer
	case m.Vocab < 50000:
		return "llama2"
	}
	return "llama3"
}

// Validate returns an error for the first invalid field.
func (m *Model) Validate() error {
	if err := tomlfile.Check(m); err != nil {
		return err
	}
	latent, wrong := m.IsLatent(), tomlfile.Wrong
	switch p := m.WindowPattern; {
	case m.QHeads%m.KVHeads != 0:
		return wrong("kv_heads", "want a divisor of q_heads = %d, got %d", m.QHeads, m.KVHeads)
	case latent && m.KVHeads != 1:
		return wrong("kv_heads", "want 1 with kv_lora_rank, as all heads share a latent, got %d",
			m.KVHeads)
	case latent && m.HeadDim != m.NopeDim+m.RopeDim:
		return wrong("head_dim", "want qk_nope_dim + qk_rope_dim = %d, got %d", m.NopeDim+m.RopeDim,
			m.HeadDim)
	case latent && m.KVBytesEach == 1 && m.KVRank%scaled != 0:
		return wrong("kv_lora_rank", "want a multiple of %d in FP8 (kv_bytes_each = 1), got %d", scaled,
			m.KVRank)
	case latent && m.QKVBias:
		return wrong("qkv_bias", "want false with kv_lora_rank, got true")
	case latent && m.IsWindowed():
		return wrong("window", "want 0 with kv_lora_rank, got %d", m.WindowTokens)
	case m.IsIndexed() && (!latent || m.QRank == 0):
		return wrong("index_top_k", "want kv_lora_rank and q_lora_rank with an indexer")
	case m.IndexEvery > 1 && m.IndexFirst == 0:
		return wrong("index_first", "want 1 or more with index_every = %d, as the first layer has none "+
			"before it", m.IndexEvery)
	case m.IsWindowed() && (strings.Trim(p, "wf") != "" || !strings.Contains(p, "w") ||
		len(p) > m.Layers):
		return wrong("window_pattern", "want a letter w (window) or f (whole context) a layer, %d at "+
			"most, with a w, such as \"wf\", got %q", m.Layers, p)
	}
	return nil
}

// TokenValues returns the values per token when all tokens of a prompt are prefilled layer by
// layer: the hidden state, and the queries, which attention overwrites.
func (m *Model) TokenValues() int { return m.Hidden + m.QHeads*m.HeadDim }

// LinearType returns the type of linears with the given bytes per weight, as grids name it.
func (m *Model) LinearType(bytes float64) string {
	switch {
	case bytes >= 2:
		return "bf16"
	case m.WeightType != "":
		return m.WeightType
	case bytes == MXFP4Bytes:
		return "mxfp4"
	case bytes == 1 && m.WeightBlock > 0:
		return "fp8_block"
	case bytes == 1:
		return "fp8"
	}
	return "nvfp4"
}

// PointwiseBytes returns the bytes that fp16 kernels read and write per token: two norms (read,
// write), two residual sums (read two, write one), rope over Q and K (read, write), gate times up
// (read two, write one).
func (m *Model) PointwiseBytes() float64 {
	rope := 2 * (m.QHeads + m.KVHeads) * m.HeadDim
	return 2 * float64(2*2*m.Hidden+2*3*m.Hidden+rope+3*m.FFN)
}

// KVType returns the type of the KV, as grids and rows name it.
func (m *Model) KVType() string {
	if m.KVBytesEach == 1 {
		return "fp8"
	}
	return "bf16"
}
