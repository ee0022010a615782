package papers

import (
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/score"
	"github.com/sparseserve/sparseserve/traces"
)

// attention describes the attention of a sample of a request's heads in one decode step, for every
// size of their selections.
type attention struct {
	blocks int // of the request, each kept or a candidate
	kept   int
	full   float64           // share of the layers with full attention
	layers [][]headAttention // heads of the others
}

// headAttention is one KV head. The query heads that share it have the same criticality of
// candidates, so the same order.
type headAttention struct {
	held    [][]float32 // by query head, as dsa.Prefixes
	reached [][]float32
	below   []float32 // by candidate in order: how far the score is below the highest, q·k / sqrt(d)
}

// attentionSample selects the sampled heads and the layout of their KV.
type attentionSample struct {
	Layers int `toml:"layers"`
	Heads  int `toml:"heads"` // KV heads of each

	digest        dsa.Digest
	sinks, window int // blocks kept
	tokens        int // of a block
	queries       int // query heads that share a KV head
	// share of a model's layers that attend to everything, whatever the selection
	full float64
}

// of draws the attention of one request in one step. The draws depend only on the seed, the request
// and the head, so systems are compared on the same requests. The flattest heads contribute most of
// the lost attention, so skews are not drawn: the skews of layers, and of the heads within a layer,
// are at even quantiles.
func (a *attentionSample) of(scores *score.Process, p *score.Params, seed uint64, request,
	prompt int) *attention {
	out := &attention{blocks: (prompt + a.tokens - 1) / a.tokens, kept: a.sinks + a.window,
		full: a.full}
	candidates := min(out.blocks-out.kept, dsa.MaxCandidates)
	if candidates < 1 {
		return out
	}
	for l := range a.Layers {
		heads := make([]headAttention, a.Heads)
		for h := range a.Heads {
			skew := p.Skew * math.Exp(p.SkewLayers*evenNormal(l, a.Layers)+
				p.SkewHeads*evenNormal(h, a.Heads))
			place := des.Hash(seed, uint64(request), uint64(l), uint64(h), 0xa77)
			family := int(place >> 20)
			sheet := dsa.Sheet{
				Setting: dsa.Setting{Digest: a.digest, Sinks: a.sinks, Window: a.window, Queries: a.queries},
				Weighs:  true, First: int(place % uint64(scores.Steps())), Steps: 1,
			}
			scores.Fill(family, candidates, &sheet)
			var v dsa.View
			sheet.View(0, skew, &v)
			heads[h] = newHeadAttention(&v)
		}
		out.layers = append(out.layers, heads)
	}
	return out
}

// newHeadAttention returns the attention of one KV head.
func newHeadAttention(v *dsa.View) (h headAttention) {
	p := v.Prefixes()
	for q := range p.Held {
		h.held, h.reached = append(h.held, single(p.Held[q])), append(h.reached, single(p.Reached[q]))
	}
	for _, b := range p.Order {
		h.below = append(h.below, v.Skew*(v.Critical[p.Order[0]]-v.Critical[b]))
	}
	return h
}

func single(xs []float64) []float32 {
	out := make([]float32, len(xs))
	for i, x := range xs {
		out[i] = float32(x)
	}
	return out
}

// evenNormal returns the i-th of n standard normal values at even quantiles.
func evenNormal(i, n int) float64 {
	return distuv.UnitNormal.Quantile((float64(i) + 0.5) / float64(n))
}

// usage is the attended share of KV and the missed attention of a selection, over the heads of all
// layers.
type usage struct {
	share  float64 // of the KV attended to
	recall float64 // share of the attention that this holds
	loss   float64 // mean square of the attention to unselected tokens
}

// under returns the usage of the request under a selector.
func (a *attention) under(s selector) usage {
	var sum usage
	heads := 0.0
	s(a, func(h *headAttention, picks int) {
		heads++
		sum.share += float64(a.kept+picks) / float64(a.blocks)
		for _, held := range h.held {
			missed := 1 - float64(held[picks])
			sum.recall += (1 - missed) / float64(len(h.held))
			sum.loss += missed * missed / float64(len(h.held))
		}
	})
	if heads == 0 {
		return usage{share: 1, recall: 1}
	}
	each := (1 - a.full) / heads
	return usage{a.full + each*sum.share, a.full + each*sum.recall, each * sum.loss}
}

// quantilePrompts draws many prompts of some sets and returns n lengths at even quantiles.
func quantilePrompts(sets []string, n int, seed uint64, tokenizer string) ([]int, error) {
	const each = 16
	work := traces.DefaultSpec()
	work.Datasets, work.Requests = sets, n*each
	all, err := promptLengths(work, seed, traces.Tokenizer(tokenizer))
	slices.Sort(all)
	var some []int
	for i := each / 2; i < len(all); i += each {
		some = append(some, all[i])
	}
	return some, err
}

// selector is a selection algorithm at one setting. It calls use with the number of candidates that
// each head of a request attends to, in addition to the kept blocks. All algorithms attend to the
// most critical candidates; they differ in the number.
type selector func(a *attention, use func(h *headAttention, picks int))

// topBlocks attends to k blocks, including the kept ones.
func topBlocks(k int) selector {
	return func(a *attention, use func(*headAttention, int)) {
		for _, heads := range a.layers {
			for i := range heads {
				use(&heads[i], min(max(0, k-a.kept), len(heads[i].below)))
			}
		}
	}
}

// progressive selects as PSA does: each head accumulates the attention share of its picks and stops
// at a threshold.
func progressive(p dsa.PSA, apart bool) selector {
	return jointly(dsa.PSALayer{PSA: p}, apart, func(h *headAttention, picks int) (sum float64) {
		for _, r := range h.reached {
			sum += float64(r[picks])
		}
		return sum
	})
}

// speculative is InfiniGen: heads report the number of tokens within the margin.
func speculative(margin float64) selector {
	return jointly(dsa.InfiniGen{Margin: margin, Most: 1}, false,
		func(h *headAttention, _ int) float64 {
			within := sort.Search(len(h.below), func(j int) bool { return float64(h.below[j]) > margin })
			return float64(within * len(h.held))
		})
}

// jointly runs a policy that decides for all heads of a layer together, as the server does. says
// returns a KV head's sum over its query heads for a number of picks. With apart, each KV head
// decides on its own.
func jointly(policy dsa.ByLayer, apart bool, says func(*headAttention, int) float64) selector {
	return func(a *attention, use func(*headAttention, int)) {
		for _, heads := range a.layers {
			size := len(heads)
			if apart {
				size = 1
			}
			for together := range slices.Chunk(heads, size) {
				n := len(together[0].below)
				stop, _ := policy.Decide(n, a.kept, 0, func(i int) float64 {
					sum, queries := 0.0, 0
					for j := range together {
						sum += says(&together[j], policy.CountAt(i, n, a.kept))
						queries += len(together[j].held)
					}
					return sum / float64(queries)
				})
				for i := range together {
					use(&together[i], policy.CountAt(stop, n, a.kept))
				}
			}
		}
	}
}
