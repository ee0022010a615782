package experiments

import (
	"sort"

	"sparseserve/sim/dsa"
)

// selector is a selection algorithm at one setting, over the heads of a request.
// All attend to the most critical candidates; they differ in how many.
type selector interface {
	// pick calls use with how many candidates each head attends to beside the kept
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

// progressive is PSA. The heads of a layer go on together, a microbatch of each
// at a time, until the mean of what they take themselves to hold passes the
// threshold: the budget is one "for each layer of each query token" (PSA §3.2).
// With apart each KV head ends by itself, as in the server of package sim.
type progressive struct {
	epsilon    float64
	microbatch int
	apart      bool
}

func (s progressive) pick(a *attention, use func(*headAttention, int)) {
	for _, layer := range a.layers() {
		for len(layer) > 0 {
			together := layer
			if s.apart {
				together = layer[:1]
			}
			layer = layer[len(together):]
			picks, n := 0, len(together[0].below)
			for picks < n && (picks == 0 || reached(together, picks) <= s.epsilon) {
				picks = min(n, dsa.Microbatches(s.microbatch, a.kept, picks)*s.microbatch-a.kept)
			}
			for i := range together {
				use(&together[i], picks)
			}
		}
	}
}

// reached is the mean share of the attention that heads take so many of their
// candidates to hold.
func reached(heads []headAttention, picks int) float64 {
	sum, n := 0.0, 0
	for i := range heads {
		for _, r := range heads[i].reached {
			sum += float64(r[picks])
			n++
		}
	}
	return sum / float64(n)
}

// speculative is InfiniGen as its authors published it: the heads of a layer
// attend to equally many tokens, the mean of how many lie within the margin.
type speculative struct{ margin float64 }

func (s speculative) pick(a *attention, use func(*headAttention, int)) {
	for _, layer := range a.layers() {
		within := 0
		for i := range layer {
			below := layer[i].below
			within += sort.Search(len(below), func(j int) bool { return float64(below[j]) > s.margin })
		}
		for i := range layer {
			use(&layer[i], max(1, within/len(layer)))
		}
	}
}
