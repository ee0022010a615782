package hw

import (
	"fmt"
	"math"

	"github.com/sparseserve/sparseserve/hw/llm"
)

// HBMPlan is the division of a card's memory, in bytes. The parts add up to Usable.
type HBMPlan struct {
	Size        int64 // the card's memory
	Usable      int64 // share of it that the server may use
	Weights     int64
	Runtime     int64 // CUDA context, libraries, workspaces
	Activations int64 // of the largest batch, in one layer
	Logits      int64 // of maxRows rows, twice
	KV          int64 // the rest: KV cache, metadata, prefill buffers
}

// KVBudget returns the HBM that remains for KV at the given utilisation (0 to 1], with batches of
// at most maxTokens tokens and maxRows rows of logits. It is an error if no KV fits.
//
//	activations = maxTokens x (2 FFN + 6 hidden) x 2 B  (activations)
//	logits      = maxRows x vocab x 4 B x 2
//
// Activations are gate and up, and the hidden state, residual, Q, K, V and
// attention output of one layer; logits are fp32, with a copy for sampling. Neither counts if they
// lie outside the utilisation (Static).
func (p *Profile) KVBudget(m *llm.Model, utilisation float64, maxTokens, maxRows int) (
	HBMPlan, error) {
	if !(utilisation > 0 && utilisation <= 1) {
		return HBMPlan{}, fmt.Errorf("HBM utilisation: want above 0 and at most 1, got %v", utilisation)
	}
	if maxTokens < 1 || maxRows < 1 {
		return HBMPlan{}, fmt.Errorf("HBM plan: want at least 1 token and 1 request a batch, got %d and "+
			"%d", maxTokens, maxRows)
	}
	size := p.GPU.HBMSize.SI()
	h := HBMPlan{
		Size:        int64(size),
		Usable:      int64(math.Floor(size * utilisation)),
		Weights:     m.WeightBytes() + m.DraftWeightBytes(),
		Runtime:     int64(p.GPU.Runtime.SI()),
		Activations: int64(maxTokens) * activations(m) * 2,
		Logits:      int64(maxRows) * int64(m.Vocab) * 4 * 2,
	}
	if p.Static.On {
		h.Activations, h.Logits = 0, 0 // outside Usable
	}
	h.KV = h.Usable - h.Weights - h.Runtime - h.Activations - h.Logits
	if h.KV < m.KVBytesPerToken() {
		return h, fmt.Errorf("%s does not fit %s: of %s usable (%.0f %% of %s) weights need %s, runtime "+
			"%s, activations %s, logits %s; nothing is left for KV (%s)",
			m.Name, p.Name, gib(h.Usable), 100*utilisation, gib(h.Size), gib(h.Weights), gib(h.Runtime),
			gib(h.Activations), gib(h.Logits), gib(h.KV))
	}
	return h, nil
}

// activations returns the most values per token in a layer: gate and up of all FFNs that the token
// passes, a copy of the token for each expert, and decompressed latents.
func activations(m *llm.Model) int64 {
	ffn := 0
	if m.OwnFFNs() > 0 {
		ffn = 2 * m.FFN
	}
	if m.IsMixture() {
		// the experts of all tokens may be on one rank
		ffn = max(ffn, 2*m.ExpertColumns()*m.Spread()+m.ExpertsPerToken*m.Hidden)
	}
	n := int64(ffn + 6*m.Hidden)
	if m.IsLatent() {
		n += int64(m.QHeads * (2*m.HeadDim + m.ValueDim))
	}
	return n
}

func gib(bytes int64) string { return fmt.Sprintf("%.2f GiB", float64(bytes)/(1<<30)) }
