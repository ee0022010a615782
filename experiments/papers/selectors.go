package papers

import (
	"sort"

	"github.com/sparseserve/sparseserve/sim/dsa"
)

// selector is a selection algorithm at one setting, over the heads of a request.
// All attend to the most critical candidates; they differ in how many.
type selector interface {
	// pick calls use with how many candidates each head attends to besides the kept
	// blocks.
	pick(a *attention, use func(h *headAttention, picks int))
}

// topBlocks attends to k blocks, those kept among them.
type topBlocks struct{ k int }

func (s topBlocks) pick(a *attention, use func(*headAttention, int)) {
	for i := range a.heads {
		use(&a.heads[i], min(max(0, s.k-a.kept), len(a.heads[i].below)))
	}
}

// jointly is a policy that decides for the heads of a layer together, as the
// server runs it, from what each of its heads says. With apart each KV head
// decides by itself.
type jointly struct {
	policy dsa.ByLayer
	// sum over query heads, of the candidates up to a stop
	says  func(h *headAttention, picks int) float64
	apart bool
}

// progressive is PSA: heads say what share of the attention they take so many of
// their candidates to hold.
func progressive(p dsa.PSA, apart bool) selector {
	return jointly{dsa.PSALayer{PSA: p}, func(h *headAttention, picks int) float64 {
		sum := 0.0
		for _, r := range h.reached {
			sum += float64(r[picks])
		}
		return sum
	}, apart}
}

// speculative is InfiniGen: heads report how many tokens are within the margin.
func speculative(margin float64) selector {
	return jointly{dsa.InfiniGen{Margin: margin, Most: 1}, func(h *headAttention, _ int) float64 {
		within := sort.Search(len(h.below), func(j int) bool { return float64(h.below[j]) > margin })
		return float64(within * len(h.held))
	}, false}
}

func (s jointly) pick(a *attention, use func(*headAttention, int)) {
	for _, layer := range a.layers() {
		for len(layer) > 0 {
			together := layer
			if s.apart {
				together = layer[:1]
			}
			layer = layer[len(together):]
			n := len(together[0].below)
			stop, _ := s.policy.Decide(n, a.kept, 0, func(i int) float64 {
				sum, queries := 0.0, 0
				for j := range together {
					sum += s.says(&together[j], s.policy.CountAt(i, n, a.kept))
					queries += len(together[j].held)
				}
				return sum / float64(queries)
			})
			for i := range together {
				use(&together[i], s.policy.CountAt(stop, n, a.kept))
			}
		}
	}
}
