package sim

import (
	"github.com/HdrHistogram/hdrhistogram-go"

	"sparseserve/sim/dsa"
)

// What share of its attention sparse attention holds: a proxy of accuracy, from
// the score process. No answer is scored.

// RecallProxy sums it up over the decode tokens of completed requests and the
// groups whose selections are known.
type RecallProxy struct {
	Mean float64 `json:"mean"` // over tokens
	// Of requests, each by the mean over its tokens: their mean, and what nine of
	// ten exceed.
	RequestMean float64 `json:"request_mean"`
	RequestP10  float64 `json:"request_p10"`
	// Missed2 is the mean over requests of the mean square of the share missed.
	Missed2 float64 `json:"missed_mean_square"`
	// Accuracy is the share of full attention's accuracy that follows by the proxy;
	// the caller fills it in.
	Accuracy float64 `json:"accuracy_proxy"`
}

// recalled is what the selections of a request's tokens held.
type recalled struct {
	rows    [][]dsa.Held // by group, over the circle of its stream
	tokens  int
	sum     float64 // over tokens, of the mean over groups
	missed2 float64 // the same, of the square of what was missed
}

// recall notes what r's current step holds.
func (s *Server) recall(r *request) {
	h := &r.recalled
	h.tokens++
	if r.grid < 0 {
		h.sum++
		return
	}
	if s.layered {
		s.recallLayers(r)
		return
	}
	if r.grid != r.lastGrid || len(h.rows) == 0 {
		h.rows = h.rows[:0]
		for _, c := range r.cursors {
			h.rows = append(h.rows, s.Library.Recall(c, r.grid))
		}
	}
	sum, missed2 := 0.0, 0.0
	for g, row := range h.rows {
		held := dsa.Held{Share: 1}
		if int(s.counted[g]) >= s.Spec.DenseLayers*s.Geometry.KVHeads {
			held = row[(int(r.cursors[g].Phase)+r.steps)%len(row)]
		}
		sum += float64(held.Share)
		missed2 += float64(held.Missed2)
	}
	h.sum += sum / float64(len(h.rows))
	h.missed2 += missed2 / float64(len(h.rows))
}

// recallLayers is recall where the heads of a layer decide together.
func (s *Server) recallLayers(r *request) {
	heads := s.Geometry.KVHeads
	sum, missed2 := float64(s.Spec.DenseLayers*heads), 0.0
	for _, layer := range r.layers {
		for h := range heads {
			held := layer.Held(h)
			sum += float64(held.Share)
			missed2 += float64(held.Missed2)
		}
	}
	r.recalled.sum += sum / float64(s.Geometry.Groups())
	r.recalled.missed2 += missed2 / float64(s.Geometry.Groups())
}

// recalls adds up requests.
type recalls struct {
	requests, tokens int64
	sum, means       float64
	missed2          float64
	missed           *hdrhistogram.Histogram // of requests, parts per million
}

func (m *recalls) add(h *recalled) {
	if h.tokens == 0 {
		return
	}
	if m.missed == nil {
		m.missed = hdrhistogram.New(1, 1e6, 3)
	}
	mean := h.sum / float64(h.tokens)
	m.requests++
	m.tokens += int64(h.tokens)
	m.sum += h.sum
	m.means += mean
	m.missed2 += h.missed2 / float64(h.tokens)
	if err := m.missed.RecordValue(int64(1e6 * max(0, 1-mean))); err != nil {
		panic(err)
	}
}

func (m *recalls) proxy() *RecallProxy {
	if m.requests == 0 {
		return nil
	}
	n := float64(m.requests)
	return &RecallProxy{
		Mean: m.sum / float64(m.tokens), RequestMean: m.means / n,
		RequestP10: 1 - float64(m.missed.ValueAtQuantile(90))/1e6, Missed2: m.missed2 / n,
	}
}
