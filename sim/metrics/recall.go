package metrics

import "github.com/sparseserve/sparseserve/internal/stats"

// RecallProxy is the share of attention that selections cover, a proxy of accuracy from the score
// process. It covers the decode tokens of completed requests and the groups with known selections.
// No answers are scored.
type RecallProxy struct {
	Mean     float64 `json:"mean"`      // over tokens
	TokenP10 float64 `json:"token_p10"` // 10th percentile over tokens
	// Mean and 10th percentile over requests of each request's mean over its tokens.
	RequestMean float64 `json:"request_mean"`
	RequestP10  float64 `json:"request_p10"`
	// Missed2 is the mean over requests of the mean squared missed share.
	Missed2 float64 `json:"missed_mean_square"`
	// Accuracy is the predicted accuracy relative to full attention; the caller fills it in.
	Accuracy float64 `json:"accuracy_proxy"`
}

// Recalled accumulates the attention share that a request's selections cover.
type Recalled struct {
	each    []float32 // by token, mean over groups
	sum     float64   // sum of each
	missed2 float64   // sum over tokens of the mean squared missed share
}

// Token adds a token: the covered share, and the mean squared missed share.
func (h *Recalled) Token(held, missed2 float64) {
	h.each = append(h.each, float32(held))
	h.sum += held
	h.missed2 += missed2
}

// means returns the means over the tokens, 0 without any.
func (h *Recalled) means() (held, missed2 float64) {
	if len(h.each) == 0 {
		return 0, 0
	}
	return h.sum / float64(len(h.each)), h.missed2 / float64(len(h.each))
}

// recalls accumulates the results of requests.
type recalls struct {
	requests, tokens   int64
	sum, means         float64
	missed2            float64
	byRequest, byToken stats.Counts // covered share in parts per billion
}

func (m *recalls) add(h *Recalled) {
	if len(h.each) == 0 {
		return
	}
	tokens := float64(len(h.each))
	mean := h.sum / tokens
	m.requests++
	m.tokens += int64(len(h.each))
	m.sum += h.sum
	m.means += mean
	m.missed2 += h.missed2 / tokens
	m.byRequest.Add(int64(mean*1e9+0.5), 1)
	for _, held := range h.each {
		m.byToken.Add(int64(float64(held)*1e9+0.5), 1)
	}
}

func (m *recalls) proxy() *RecallProxy {
	if m.requests == 0 {
		return nil
	}
	n := float64(m.requests)
	return &RecallProxy{
		Mean: m.sum / float64(m.tokens), TokenP10: m.byToken.Percentiles(10)[0] / 1e9,
		RequestMean: m.means / n, RequestP10: m.byRequest.Percentiles(10)[0] / 1e9,
		Missed2: m.missed2 / n,
	}
}
