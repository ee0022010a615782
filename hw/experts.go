package hw

import (
	"github.com/sparseserve/sparseserve/sim"
)

// experts is the time of a layer's routed experts: two grouped GEMMs over those that the batch
// touches. An expert with m tokens takes as long as a matrix of its size does with m:
//
//	t(n) = launch + D(n) t_expert(n k / D(n)),  D(n) = E (1 - (1 - k/E)^n)
//
// with n tokens of which each goes to k of E experts, all alike likely, and none of t_expert's
// launches. Weights are read once for all tokens of an expert, so a small batch costs the bytes of
// k experts a token, and a large one those of all. Under tensor parallelism every GPU has a part
// of each expert; spread over ranks, D and n k are those of the fullest rank (expert_ranks.go).
type experts struct {
	each   gemm
	model  *Model
	launch float64 // seconds
}

// newExperts prices those of a model, nil where it has none.
func newExperts(p *Profile, m *Model) *experts {
	if !m.IsMixture() {
		return nil
	}
	e := &experts{each: newGEMMOf(p, m, float64(m.expertLinears()), m.expertBytes()), model: m}
	e.launch = e.each.launches / 2 // two of a layer's four matrices, each one kernel for all experts
	return e
}

// Seconds implements Cost.
func (e *experts) Seconds(w *sim.Work) (s float64, beyond bool) { return e.of(float64(w.Tokens)) }

// of returns the time for n tokens and whether an expert's are beyond the rows.
func (e *experts) of(n float64) (t float64, outside bool) {
	if n <= 0 {
		return 0, false
	}
	distinct, rows := e.model.fullest(n)
	each := rows / distinct
	return e.launch + distinct*e.each.beyond(each), each > e.each.measured.last()
}

// least bounds the time of n tokens at any clock.
func (e *experts) least(n float64) float64 {
	distinct, rows := e.model.fullest(n)
	each := rows / distinct
	l := &e.each
	return e.launch + distinct*l.peak.floor(2*each*l.weights, l.weights*l.bytes)
}
