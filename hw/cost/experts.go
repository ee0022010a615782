package cost

import (
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
)

// experts models a layer's routed experts: two grouped GEMMs over the experts that the batch
// activates. An expert with m tokens costs as much as a matrix of its size with m tokens:
//
//	t(n) = launch + D(n) t_expert(n k / D(n))
//
// with n tokens, each routed to k experts, D distinct ones together (llm.Router). t_expert is
// without launches. An
// expert's weights are read once for all its tokens, so a small batch reads k experts per token and
// a large batch all experts. Under tensor parallelism every GPU has a part of each expert. With
// expert parallelism, D and n k are the values of the fullest rank (fullest).
type experts struct {
	each   gemm
	model  *llm.Model
	router llm.Router
	launch float64 // seconds

	measured curve   // tokens per expert, seconds; empty: use linears of that size
	saved    float64 // seconds that an expert of one token saves with fewer bytes than the measured
	binds    float64 // tokens per expert from which arithmetic binds a measured kernel
	copied   float64 // seconds per copy of a token
	fused    bool    // the shared expert is one of them
}

// fusesShared reports whether the engine runs a model's shared expert with the routed ones (SGLang,
// deepseek_v2.py: determine_num_fused_shared_experts).
func fusesShared(p *hw.Profile, m *llm.Model) bool {
	return p.FusedShared && m.IsLatent() && !m.IsIndexed() && m.Experts == 256 &&
		m.SharedExperts == 1 && m.Spread() == 1
}

// newExperts prices a model's routed experts; nil if it has none.
func newExperts(p *hw.Profile, m *llm.Model) *experts {
	if !m.IsMixture() {
		return nil
	}
	e := &experts{each: newShapeGEMM(p, m, float64(m.ExpertLinears()), m.ExpertBytes()), model: m,
		router: m.Router()}
	for _, kind := range nearestExperts(expertType(m)) {
		row := slices.IndexFunc(p.Experts, func(r hw.ExpertRow) bool { return r.Weights == kind })
		if g := p.GridOf(hw.GridExpert, kind); row >= 0 && g != nil {
			r := &p.Experts[row]
			e.launch, e.copied = r.Launch.SI(), 2*float64(m.Hidden)/r.Move.SI()
			for _, tokens := range g.Axes[0].At {
				e.measured.add(tokens, GridSeconds(g, hw.Sizes{tokens, float64(m.ExpertLinears())}))
			}
			e.saved = max(0, 1-m.ExpertBytes()/hw.WeightBytes(kind)) * e.measured.y[0]
			e.fused = fusesShared(p, m)
			e.binds = p.GPU.PeakOf(kind) / p.GPU.HBMBandwidth.SI() * hw.WeightBytes(kind) / 2
			return e
		}
	}
	e.launch = e.each.launches / 2 // two of a layer's four matrices, each one kernel for all experts
	return e
}

// nearestExperts returns the types of measured experts that price weights of a type, the nearest
// first. FP8 with one scale a tensor runs the kernel of block-scaled FP8 if it was not measured.
// Four bits run that of MXFP4, which widens weights too, and others that of 16-bit weights. One
// token waits for the bytes of an expert's weights, so fewer bytes save their part of its time, the
// less the more arithmetic binds.
func nearestExperts(kind string) []string {
	switch {
	case kind == "fp8":
		return []string{kind, "fp8_block", "bf16"}
	case hw.WeightBytes(kind) < 1:
		return []string{kind, "mxfp4", "bf16"}
	}
	return []string{kind, "bf16"}
}

// expertType returns the type of a model's expert weights, as profile rows name it.
func expertType(m *llm.Model) string { return m.LinearType(m.ExpertBytes()) }

func (e *experts) isMeasured() bool { return len(e.measured.x) > 0 }

// of returns the time of n tokens and reports whether an expert's tokens exceed the measured rows.
func (e *experts) of(n float64) (t float64, outside bool) {
	if n <= 0 {
		return 0, false
	}
	distinct, rows := e.fullest(n)
	each := rows / distinct
	if e.isMeasured() { // every rank passes all copies
		t := e.launch + distinct*e.one(each) + n*float64(e.model.ExpertsPerToken)*e.copied
		if e.fused {
			t += e.one(n) + n*e.copied
		}
		return max(t, e.least(n)), false
	}
	return e.launch + distinct*e.each.beyond(each), each > e.each.measured.last()
}

// one returns the time of one measured expert with n tokens.
func (e *experts) one(n float64) float64 {
	t, _ := e.measured.cost(n)
	t -= e.saved * max(0, 1-n/e.binds)
	return max(t, e.each.peak.floor(2*n*e.each.weights, e.each.weights*e.each.bytes))
}

// least returns a lower bound of the time of n tokens at any clock.
func (e *experts) least(n float64) float64 {
	distinct, rows := e.fullest(n)
	each := rows / distinct
	l := &e.each
	return e.launch + distinct*l.peak.floor(2*each*l.weights, l.weights*l.bytes)
}

// fullest returns, for n tokens, the expected maximum over ranks of the distinct experts with
// tokens, and of the token copies. The layer waits for the fullest rank. Each of R ranks has m =
// E/R experts, drawn at random, and an expert receives tokens with P = D(n)/E:
//
//	D = E[max of R] = sum over j < m of 1 - P(Binomial(m, P) <= j)^R
//	rows = n k / R + sigma c sqrt(R / (R-1))
//	sigma^2 = (n k (1/R) (1 - 1/R) + n^2 m Var(p)) (E-k or E-m)/(E-1)
//
// with at most n min(k, m) rows. The first part of sigma is chance, the second the popularity of
// the rank's experts. c is the expected maximum of R independent standard normals; the ranks share
// n k rows, so any two correlate with -1/(R-1).
func (e *experts) fullest(n float64) (distinct, rows float64) {
	k, ranks := float64(e.model.ExpertsPerToken), e.model.Spread()
	distinct, rows = e.router.Distinct(n), n*k
	if ranks == 1 {
		return distinct, rows
	}
	r, all := float64(ranks), float64(e.model.Experts)
	held := e.model.Experts / ranks
	most := math.Min(k, float64(held))
	chance := n * k / r * (1 - 1/r) * (all - k) / max(1, all-1)
	popular := n * n * float64(held) * e.router.Variance() * (all - float64(held)) / max(1, all-1)
	sigma := math.Sqrt(chance + popular)
	rows = math.Min(rows/r+sigma*normalMaximum(ranks)*math.Sqrt(r/(r-1)), n*most)
	distinct = binomialMaximum(held, distinct/all, ranks)
	return math.Min(distinct, rows), rows
}

// binomialMaximum returns the expected maximum of the given number of draws from Binomial(m, p).
func binomialMaximum(m int, p float64, draws int) (mean float64) {
	if p >= 1 {
		return float64(m)
	}
	odds, below := math.Log(p)-math.Log1p(-p), 0.0
	chance := float64(m) * math.Log1p(-p) // logarithm, because (1-p)^m may underflow
	for j := range m {
		below += math.Exp(chance)
		mean += 1 - math.Pow(math.Min(below, 1), float64(draws))
		chance += odds + math.Log(float64(m-j)/float64(j+1))
	}
	return mean
}

// normalMaximum returns the expected maximum of 2, 4 or 8 standard normals (Harter, Expected values
// of normal order statistics, Biometrika 48, 1961).
func normalMaximum(draws int) float64 {
	switch draws {
	case 2:
		return 0.56419
	case 4:
		return 1.02938
	}
	return 1.42360
}
