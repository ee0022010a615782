package cost

import (
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
)

// selected prices a layer without its linears if an indexer selects latents, from the grids
// selected_prefill (tokenGrid) and selected_decode:
//
//	prefill   launch + chunks of the grid
//	decode    grid(requests, tokens)
//
// Attention reads no more than TopK tokens, so the time beyond that of contexts of TopK tokens is
// the indexer's, and so is a part of the launches.
type selected struct {
	decodes             *lattice
	prompts             tokenGrid
	heads, indexHeads   float64
	topK                float64
	launch, indexLaunch float64
	attends             peak
	scores              peak    // in FP8
	flops, bytes        float64 // of a query and a latent; of a latent
	pairs, keys         float64 // FLOPs of a query and a key; bytes of a key
}

// newSelected returns nil if the kernels have no grids for the model or the model has no indexer.
func newSelected(p *hw.Profile, m *llm.Model) *selected {
	prompts := p.GridOf(hw.GridSelectedPrefill, m.KVType())
	decodes := p.GridOf(hw.GridSelected, m.KVType())
	if prompts == nil || decodes == nil || !m.IsIndexed() || !m.IsLatent() {
		return nil
	}
	s := &selected{decodes: newLattice(decodes),
		heads: float64(m.QHeads), indexHeads: float64(m.IndexHeads), topK: float64(m.IndexTopK),
		launch: p.Selected.Launch.Optional(), indexLaunch: p.Selected.IndexLaunch.Optional(),
		attends: peakOf(p), scores: peakOf(p),
		flops: float64(m.QHeads * (2*m.LatentDim() + 2*m.KVRank)),
		bytes: float64(m.LayerKVBytesPerToken()),
		pairs: 2 * float64(m.IndexHeads*m.IndexHeadDim), keys: float64(m.IndexKeyBytes)}
	s.scores.flops = p.GPU.PeakOf("fp8")
	s.prompts = newTokenGrid(prompts, s.indexHeads, s.heads)
	return s
}

// prefill returns the seconds of attention and indexer for chunks.
func (s *selected) prefill(spans []sim.Span) (attention, index float64) {
	reads := prefillAttention{flops: s.flops, window: s.topK}
	for _, span := range spans {
		if span.Query <= 0 {
			continue
		}
		q, prefix := float64(span.Query), float64(span.Prefix)
		bounded := s.prompts.chunk(span, s.topK)
		attention += max(bounded, s.attends.floor(reads.spanFLOPs(span), q*s.bytes))
		index += max(s.prompts.chunk(span, 0)-bounded,
			s.scores.floor((q*prefix+q*q/2)*s.pairs, (q+prefix)*s.keys))
	}
	if attention > 0 {
		attention, index = attention+s.launch, index+s.indexLaunch
	}
	return attention, index
}

// decode returns the seconds of attention of requests with several queries each to rows latents,
// summed over requests.
func (s *selected) decode(rows, requests, queries float64) float64 {
	if rows <= 0 {
		return 0
	}
	t := s.at(min(rows, max(1, requests)*s.topK), requests, queries)
	return max(t-s.indexLaunch, s.attends.floor(rows*queries*s.flops, rows*s.bytes))
}

// index returns the seconds in which an indexer scores tokens of requests' contexts and selects the
// best.
func (s *selected) index(tokens, requests, queries float64) float64 {
	if tokens <= 0 {
		return 0
	}
	bounded := s.at(min(tokens, max(1, requests)*s.topK), requests, queries)
	return max(s.indexLaunch+(s.at(tokens, requests, queries)-bounded),
		s.scores.floor(tokens*queries*s.pairs, tokens*s.keys))
}

// at returns the grid's seconds of decodes of tokens, summed over requests.
func (s *selected) at(tokens, requests, queries float64) float64 {
	requests = max(1, requests)
	t, _ := s.decodes.seconds(hw.Sizes{requests * queries, tokens / requests, s.indexHeads, s.heads})
	return t
}

// ModuleLinears returns the linears of a layer's attention and of its indexer, in seconds.
func ModuleLinears(p *hw.Profile, m *llm.Model, tokens int) float64 {
	g := newGEMMOf(p, m, append(m.AttentionMatrices(), m.IndexerMatrices()...),
		m.WeightBytesEach)
	t, _ := g.of(float64(tokens))
	return t
}

// SelectedSeconds returns the seconds of attention and indexer in one layer, by the grids of
// selected latents.
func SelectedSeconds(p *hw.Profile, m *llm.Model, w *sim.Work) float64 {
	s, requests := newSelected(p, m), float64(w.Decodes)
	attention, index := s.prefill(w.Prefill)
	return attention + index + s.decode(float64(w.BoundedTokens), requests, 1) +
		s.index(float64(w.DecodeTokens), requests, 1)
}

// tokenGrid is the measured time per token of prompts among many, with the heads of one model. It
// is a fixed part and a part per token of the mean context, so it is interpolated linearly in
// tokens. It is constant below the grid; beyond it, it grows as between the last two points.
type tokenGrid struct{ each curve } // tokens of a prompt, seconds per token

// newTokenGrid reads a grid of tokens and the head sizes of a model.
func newTokenGrid(g *hw.Grid, heads ...float64) (t tokenGrid) {
	for _, tokens := range g.Axes[0].At {
		sizes := hw.Sizes{tokens}
		copy(sizes[1:], heads)
		t.each.add(tokens, GridSeconds(g, sizes))
	}
	return t
}

// of returns the seconds per token of a prompt.
func (t *tokenGrid) of(tokens float64) float64 {
	c, n := &t.each, len(t.each.x)-1
	if tokens <= c.x[n] || n == 0 {
		s, _ := c.cost(min(tokens, c.x[n]))
		return s
	}
	return c.y[n] + (tokens-c.x[n])*(c.y[n]-c.y[n-1])/(c.x[n]-c.x[n-1])
}

// chunk returns the seconds of a chunk as a part of a prompt with the same mean context. window is
// the most tokens of the prompt; 0: any.
func (t *tokenGrid) chunk(s sim.Span, window float64) float64 {
	tokens := 2*float64(s.Prefix) + float64(s.Query)
	if window > 0 {
		tokens = min(tokens, window)
	}
	return float64(s.Query) * t.of(tokens)
}
