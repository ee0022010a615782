package papers

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/traces"
)

// attention is what a sample of a request's heads would attend to in one decode
// step, at every size of their selections.
type attention struct {
	blocks int // of the request, each kept or a candidate
	kept   int
	full   float64         // share of the layers that attend to everything
	heads  []headAttention // of the others
}

// headAttention is one KV head. The query heads that share it have their
// candidates' criticality, and so the order, in common.
type headAttention struct {
	layer   int
	held    [][]float32 // by query head, as dsa.Prefixes
	reached [][]float32
	below   []float32 // by candidate in order: how far the score is below the highest, q·k / sqrt(d)
}

// attentionSample says which heads to look at, and how their KV is cut up.
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

// of draws the attention of one request in one step. What is drawn depends on
// the seed, the request and the head alone, so that systems are compared on the
// same requests. The flattest heads lose most of the attention that is lost, so
// the skews of the sample are no draws: those of layers, and of the heads of one,
// are at even quantiles.
func (a *attentionSample) of(scores *traces.Scores, p *traces.ScoreParams, seed uint64, request,
	prompt int) *attention {
	out := &attention{blocks: (prompt + a.tokens - 1) / a.tokens, kept: a.sinks + a.window,
		full: a.full}
	candidates := min(out.blocks-out.kept, dsa.MaxCandidates)
	if candidates < 1 {
		return out
	}
	for l := range a.Layers {
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
			out.heads = append(out.heads, newHeadAttention(l, &v))
		}
	}
	return out
}

// newHeadAttention is what a KV head of a layer sees.
func newHeadAttention(layer int, v *dsa.View) headAttention {
	h, p := headAttention{layer: layer}, v.Prefixes()
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

// evenNormal is the i-th of n standard normal numbers at even quantiles.
func evenNormal(i, n int) float64 {
	return distuv.UnitNormal.Quantile((float64(i) + 0.5) / float64(n))
}

// layers returns the heads layer by layer.
func (a *attention) layers() [][]headAttention {
	var out [][]headAttention
	for heads := a.heads; len(heads) > 0; {
		n := 1
		for n < len(heads) && heads[n].layer == heads[0].layer {
			n++
		}
		out, heads = append(out, heads[:n]), heads[n:]
	}
	return out
}

// usage is what a selection attends to and what it misses, over the heads of all
// layers.
type usage struct {
	share  float64 // of the KV attended to
	recall float64 // share of the attention that this holds
	loss   float64 // mean square of what it does not hold
}

// under returns what the request attends to under a selector.
func (a *attention) under(s selector) usage {
	if len(a.heads) == 0 {
		return usage{share: 1, recall: 1}
	}
	var sum usage
	s.pick(a, func(h *headAttention, picks int) {
		sum.share += float64(a.kept+picks) / float64(a.blocks)
		for _, held := range h.held {
			missed := 1 - float64(held[picks])
			sum.recall += (1 - missed) / float64(len(h.held))
			sum.loss += missed * missed / float64(len(h.held))
		}
	})
	each := (1 - a.full) / float64(len(a.heads))
	return usage{a.full + each*sum.share, a.full + each*sum.recall, each * sum.loss}
}

// quantilePrompts returns n prompt lengths of some sets at even quantiles of many
// more.
func quantilePrompts(sets []string, n int, seed uint64, tokenizer string) ([]int, error) {
	const each = 16
	work := traces.DefaultSpec()
	work.Datasets, work.Requests = sets, n*each
	stream, err := traces.Open(work, seed, traces.Tokenizer(tokenizer))
	if err != nil {
		return nil, fmt.Errorf("%v: %w", sets, err)
	}
	defer stream.Close()
	var all, some []int
	for {
		a, ok, err := stream.Next()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		all = append(all, a.Prompt)
	}
	slices.Sort(all)
	for i := each / 2; i < len(all); i += each {
		some = append(some, all[i])
	}
	return some, nil
}
