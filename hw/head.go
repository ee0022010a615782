package hw

import "math"

// head is the embedding, the LM head and sampling of one step.
//
//	t = lm(sampled) + draw(sampled) + embed(tokens)
//
// A profile with head rows gives lm and draw together, measured, scaled by
// hidden x vocab from the nearest shape. Without them lm is the linears' curve
// at hidden x vocab weights, and drawing passes over the fp32 logits three
// times, written once, read for the maximum and the draw: 3 * 4 V sampled /
// HBM rate. The embedding reads and writes one fp16 row a token: launch + 2 *
// 2 h tokens / rate, of the profile's embedding where it has one, else without
// launch at HBM rate.
type head struct {
	lm          linears
	rate        float64 // HBM bytes/s as streaming kernels achieve it
	logitBytes  float64 // per sampled row, all passes; 0: measured with lm
	embedsBytes float64 // per token
	embed       float64 // seconds, launch
	vocab       float64
	topP        Sampling // of each step that samples; zero: drawing is in the passes above
	embedRate   float64  // bytes/s
}

func newLMHead(p *Profile, m *Model) head {
	h := head{
		lm:          newHead(p, m),
		rate:        math.Min(p.DenseDecode.Rate.SI(), p.GPU.HBMBandwidth.SI()),
		logitBytes:  3 * 4 * float64(m.Vocab),
		embedsBytes: 2 * float64(m.Hidden*m.WeightBytesEach),
	}
	h.embedRate = h.rate
	if p.Embedding.Rate.Set() {
		h.embed, h.embedRate = p.Embedding.Launch.optional(), math.Min(p.Embedding.Rate.SI(), p.GPU.HBMBandwidth.SI())
	}
	if len(p.Head) > 0 {
		h.lm.measured, h.lm.scale = headCurve(p, m)
		h.logitBytes = 0
	}
	return h
}

// headCurve picks the head rows of the nearest hidden x vocab.
func headCurve(p *Profile, m *Model) (c curve, scale float64) {
	weights := func(hidden, vocab int) float64 { return float64(hidden) * float64(vocab) }
	best, distance := "", math.Inf(1)
	for _, r := range p.Head {
		s := p.shape(r.Shape)
		d := math.Abs(math.Log(weights(m.Hidden, m.Vocab) / weights(s.Hidden, s.Vocab)))
		if d < distance {
			best, distance = r.Shape, d
		}
	}
	s := p.shape(best)
	return tokenCurve(p.Head, best), weights(m.Hidden, m.Vocab) / weights(s.Hidden, s.Vocab) * float64(m.WeightBytesEach) / 2
}

// sortsLogits has tokens drawn by top-p, where the kernels' costs are known.
func (h *head) sortsLogits(p *Profile, m *Model) {
	h.topP, h.vocab = p.Sampling, float64(m.Vocab)
}

// seconds returns the time for tokens in the batch, sampled of which emit one.
func (h *head) seconds(tokens, sampled int) float64 {
	t, _ := h.lm.seconds(float64(sampled))
	if sampled > 0 && h.topP.Rate.Set() {
		t += h.topP.Launch.optional() + h.vocab*h.topP.Row.optional() + 4*float64(sampled)*h.vocab/h.topP.Rate.SI()
	}
	t += float64(sampled) * h.logitBytes / h.rate
	if tokens > 0 {
		t += h.embed + float64(tokens)*h.embedsBytes/h.embedRate
	}
	return t
}
