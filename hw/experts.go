package hw

import (
	"github.com/sparseserve/sparseserve/sim"
)

// experts models a layer's routed experts: two grouped GEMMs over the experts that the batch
// activates. An expert with m tokens costs as much as a matrix of its size with m tokens:
//
//	t(n) = launch + D(n) t_expert(n k / D(n)),  D(n) = E (1 - (1 - k/E)^n)
//
// with n tokens, each routed to k of E equally likely experts. t_expert is without launches. An
// expert's weights are read once for all its tokens, so a small batch reads k experts per token and
// a large batch all experts. Under tensor parallelism every GPU has a part of each expert. With
// expert parallelism, D and n k are the values of the fullest rank (expert_ranks.go).
type experts struct {
	each   gemm
	model  *Model
	launch float64 // seconds

	measured curve   // tokens per expert, seconds; empty: use linears of that size
	copied   float64 // seconds per copy of a token
}

// newExperts prices a model's routed experts; nil if it has none.
func newExperts(p *Profile, m *Model) *experts {
	if !m.IsMixture() {
		return nil
	}
	e := &experts{each: newShapeGEMM(p, m, float64(m.expertLinears()), m.expertBytes()), model: m}
	kind := expertType(m)
	for i := range p.Experts {
		if r, g := &p.Experts[i], p.grid(GridExpert, kind); r.Weights == kind && g != nil {
			e.launch, e.copied = r.Launch.SI(), 2*float64(m.Hidden)/r.Move.SI()
			for _, tokens := range g.Axes[0].At {
				e.measured.add(tokens, g.Seconds(Sizes{tokens, float64(m.expertLinears())}))
			}
			return e
		}
	}
	e.launch = e.each.launches / 2 // two of a layer's four matrices, each one kernel for all experts
	return e
}

// expertType returns the type of a model's expert weights, as profile rows name it.
func expertType(m *Model) string { return m.typeOf(m.expertBytes()) }

func (e *experts) isMeasured() bool { return len(e.measured.x) > 0 }

// Seconds implements Cost.
func (e *experts) Seconds(w *sim.Work) (s float64, beyond bool) { return e.of(float64(w.Tokens)) }

// of returns the time of n tokens and reports whether an expert's tokens exceed the measured rows.
func (e *experts) of(n float64) (t float64, outside bool) {
	if n <= 0 {
		return 0, false
	}
	distinct, rows := e.model.fullest(n)
	each := rows / distinct
	if e.isMeasured() { // every rank passes all copies
		expert, _ := e.measured.cost(each)
		t := e.launch + distinct*expert + n*float64(e.model.ExpertsPerToken)*e.copied
		return max(t, e.least(n)), false
	}
	return e.launch + distinct*e.each.beyond(each), each > e.each.measured.last()
}

// least returns a lower bound of the time of n tokens at any clock.
func (e *experts) least(n float64) float64 {
	distinct, rows := e.model.fullest(n)
	each := rows / distinct
	l := &e.each
	return e.launch + distinct*l.peak.floor(2*each*l.weights, l.weights*l.bytes)
}
