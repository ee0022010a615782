package cost

import (
	"math"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
)

// head models the embedding, the LM head and sampling of one step.
//
//	t = lm(sampled) + 3 * 4 V sampled / rate + 2 * 2 h tokens / rate
//
// lm is the linears' curve at hidden x vocab weights. Sampling makes three passes over the fp32
// logits: one write, one read for the maximum, one read for the draw. The embedding reads and
// writes one fp16 row per token. Both run at the HBM rate of dense decode.
type head struct {
	lm          gemm
	rate        float64 // HBM bytes/s of streaming kernels
	logitBytes  float64 // per sampled row, all passes
	embedsBytes float64 // per token
	vocab       float64
	topP        hw.Sampling // top-p cost per step; zero: sampling is in the passes above

	last struct { // cache: most steps repeat both counts
		tokens, sampled int
		seconds         float64
	}
}

func newLMHead(p *hw.Profile, m *llm.Model) head {
	return head{
		lm:          newHead(p, m),
		rate:        math.Min(p.DenseDecode.Rate.SI(), p.GPU.HBMBandwidth.SI()),
		logitBytes:  3 * 4 * float64(m.Logits()),
		embedsBytes: 2 * float64(int64(m.Hidden)*m.WideBytes()),
	}
}

// sortsLogits adds the cost of top-p, if the kernels have it.
func (h *head) sortsLogits(p *hw.Profile, m *llm.Model) {
	h.topP, h.vocab = p.Sampling, float64(m.Logits())
}

// seconds returns the time of a step with the given tokens, of which sampled rows emit a token.
func (h *head) seconds(tokens, sampled int) float64 {
	if l := &h.last; tokens != l.tokens || sampled != l.sampled {
		l.tokens, l.sampled, l.seconds = tokens, sampled, h.of(tokens, sampled)
	}
	return h.last.seconds
}

func (h *head) of(tokens, sampled int) float64 {
	t, _ := h.lm.of(float64(sampled))
	if sampled > 0 && h.topP.Rate.Set() {
		t += h.topP.Launch.Optional() + h.vocab*h.topP.Row.Optional() +
			4*float64(sampled)*h.vocab/h.topP.Rate.SI()
	}
	t += float64(sampled) * h.logitBytes / h.rate
	if tokens > 0 {
		t += float64(tokens) * h.embedsBytes / h.rate
	}
	return t
}
