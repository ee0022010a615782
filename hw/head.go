package hw

import "math"

// head is the embedding, the LM head and sampling of one step.
//
//	t = lm(sampled) + 3 * 4 V sampled / rate + 2 * 2 h tokens / rate
//
// lm is the linears' curve at hidden x vocab weights. Drawing passes over the fp32 logits
// three times, written once, read for the maximum and the draw; the embedding reads and
// writes one fp16 row a token. Both run at the HBM rate of dense decode.
type head struct {
	lm          gemm
	rate        float64 // HBM bytes/s as streaming kernels achieve it
	logitBytes  float64 // per sampled row, all passes
	embedsBytes float64 // per token
	vocab       float64
	topP        Sampling // of each step that samples; zero: drawing is in the passes above

	last struct { // step's, as most steps have as many of both
		tokens, sampled int
		seconds         float64
	}
}

func newLMHead(p *Profile, m *Model) head {
	return head{
		lm:          newHead(p, m),
		rate:        math.Min(p.DenseDecode.Rate.SI(), p.GPU.HBMBandwidth.SI()),
		logitBytes:  3 * 4 * float64(m.logits()),
		embedsBytes: 2 * float64(int64(m.Hidden)*m.wide()),
	}
}

// sortsLogits has tokens drawn by top-p, where the kernels' costs are known.
func (h *head) sortsLogits(p *Profile, m *Model) {
	h.topP, h.vocab = p.Sampling, float64(m.logits())
}

// seconds returns the time for tokens in the batch, sampled of which emit one.
func (h *head) seconds(tokens, sampled int) float64 {
	if l := &h.last; tokens != l.tokens || sampled != l.sampled {
		l.tokens, l.sampled, l.seconds = tokens, sampled, h.of(tokens, sampled)
	}
	return h.last.seconds
}

func (h *head) of(tokens, sampled int) float64 {
	t, _ := h.lm.of(float64(sampled))
	if sampled > 0 && h.topP.Rate.Set() {
		t += h.topP.Launch.optional() + h.vocab*h.topP.Row.optional() +
			4*float64(sampled)*h.vocab/h.topP.Rate.SI()
	}
	t += float64(sampled) * h.logitBytes / h.rate
	if tokens > 0 {
		t += float64(tokens) * h.embedsBytes / h.rate
	}
	return t
}
