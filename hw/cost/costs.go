package cost

import (
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// layerCost is the cost of one layer's Work, each part without the others.
type layerCost struct {
	linears, prefill, dense, sparse, scoring des.Time

	pointwise des.Time // of linears
	index     des.Time // of sparse prefill, or of an indexer in prefill
	choice    des.Time // an indexer's scores for decodes

	chunk chunk // of a layer with prefill; linears and prefill are at the full clock
}

// coster prices Work with the cost models of one layer class. It caches the last Work, because most
// layers of a step have the same work.
type coster struct {
	linears   gemm
	pointwise elementwise
	prefill   prefillAttention
	patterns  sparsePrefill
	dense     memoryBound
	sparse    memoryBound
	scoring   memoryBound
	head      head
	qkv       float64 // share of linears before K and V are ready
	chunks    chunks

	engine *hw.EngineCosts
	graphs hw.Graphs

	class   layerClass // for a model that is not plain
	experts *experts
	latent  *latentDecode
	indexer *indexer
	// selected replaces latent and indexer if the kernels have its grids
	selected *selected
	bounded  bool // decodes attend to Work.BoundedTokens
	// sharesLink is set if several GPUs have no other link between them than the host's.
	sharesLink bool
	narrow     bool // weights have fewer than 16 bits

	notes *notes
	known bool
	work  sim.Work // of the last call; Prefill is a copy
	cost  layerCost

	rows rowsCost // of the last call
}

// rowsCost caches the parts of a layer's cost, in seconds, that depend on the token count only.
// Most steps have the same count as the step before.
type rowsCost struct {
	tokens                                float64 // 0: none yet
	rows                                  float64 // of linears
	linears, routed, pointwise, least     float64
	beyond, beyondPointwise, beyondRouted bool
}

func (c *coster) ofRows(n int) *rowsCost {
	r, tokens := &c.rows, float64(n)
	if tokens == r.tokens {
		return r
	}
	rows := float64(c.engine.LinearRows(n))
	*r = rowsCost{tokens: tokens, rows: rows, least: c.linears.least(rows)}
	r.linears, r.beyond = c.linears.of(rows)
	r.pointwise, r.beyondPointwise = c.pointwise.of(tokens)
	if c.experts != nil {
		r.routed, r.beyondRouted = c.experts.of(tokens)
		r.least += c.experts.least(tokens)
	}
	return r
}

func newCoster(p *hw.Profile, m *llm.Model, opts *DeviceOptions) coster {
	c := coster{
		linears:   newGEMM(p, m),
		pointwise: newElementwise(p, m),
		prefill:   newPrefillAttention(p, m, opts.BlockTokens),
		dense:     newDense(p, m),
		sparse:    newSparse(p, m),
		scoring:   newScoring(p, m),
		head:      newLMHead(p, m),
		qkv:       float64(m.LayerQKV()) / float64(m.LayerLinears()),
		chunks:    newChunks(p, m),

		engine:     &p.EngineCosts,
		graphs:     graphsOf(p, m),
		sharesLink: m.GPUs() > 1 && !p.Interconnect.Nominal.Set(),
	}
	if opts.TopP {
		c.head.sortsLogits(p, m)
	}
	c.patterns = newSparsePrefill(p, m, c.prefill)
	_, native := gemmGrid(p, m, m.WeightBytesEach)
	c.narrow = m.WeightBytesEach < 2 && !native || m.IsMixture() && m.ExpertBytes() < 2 &&
		p.GridOf(hw.GridExpert, expertType(m)) == nil
	c.notes = newNotes(p, m, &c)
	return c
}

// layer returns the cost of w in one layer, valid until the next call.
func (c *coster) layer(w *sim.Work) *layerCost {
	// Device.rounds prices rounds; lists and tables are free.
	if c.known && c.work.SameBatch(w) && len(c.work.Rounds) == len(w.Rounds) {
		return &c.cost
	}
	spans := append(c.work.Prefill[:0], w.Prefill...)
	c.work = *w
	c.work.Prefill = spans
	c.price(w)
	c.known = true
	return &c.cost
}

// price sets c.cost to the cost of w.
func (c *coster) price(w *sim.Work) {
	n := c.notes
	padded, _ := holds(&c.graphs, w)
	tokens := float64(padded)
	rows := c.ofRows(padded)
	lin, pw := rows.linears+rows.routed, rows.pointwise
	n.mark(noteLinears, rows.beyond || rows.beyondRouted, tokens)
	n.mark(noteShape, tokens > 0 && !c.linears.exact, 0)
	n.mark(noteInterconnect, c.sharesLink, 0)
	n.mark(noteNarrow, tokens > 0 && c.narrow, 0)
	n.mark(noteExperts, c.experts != nil && !c.experts.isMeasured(), 0)
	n.mark(noteExpertRows, c.experts != nil && c.experts.saved > 0, 0)
	n.mark(notePointwise, rows.beyondPointwise, tokens)
	pre, index := c.chunksOf(w), 0.0
	if c.selected != nil {
		pre, index = c.selected.prefill(w.Prefill)
	}
	if len(w.Patterns) > 0 && len(w.Prefill) > 0 {
		pre, index = c.patterns.of(w.Patterns, w.Prefill)
		n.mark(noteSparsePrefill, c.patterns.assumes(w.Patterns), 0)
	}
	switch {
	case c.indexer == nil:
		if c.selected != nil {
			index = 0 // the layer shares the selection of the layer before
		}
	case c.selected == nil:
		index += c.indexer.prefill(w.Prefill)
		n.mark(noteIndexer, tokens > 0, 0)
	}
	scoring, _ := c.scoring.Seconds(w)
	cost := &c.cost
	*cost = layerCost{
		pointwise: nanoseconds(pw), linears: nanoseconds(lin) + nanoseconds(pw),
		prefill: nanoseconds(pre), index: nanoseconds(index),
		scoring: nanoseconds(scoring),
	}
	if len(w.Prefill) > 0 {
		cost.chunk = c.chunks.of(rows.least, lin, rows.rows, pre)
		cost.linears = nanoseconds(cost.chunk.linears) + cost.pointwise
	}
	if c.bounded && c.indexer == nil { // the layer shares the selection of the layer before
		cost.scoring = 0
	}
	if c.indexer != nil {
		cost.choice = nanoseconds(c.scores(w))
		if w.Sparse { // Device.Score
			cost.scoring, cost.choice = cost.choice, 0
		}
	}
	switch {
	case len(w.Rounds) > 0: // Device.rounds
	case c.latent != nil:
		cost.dense, cost.sparse = c.overLatents(w)
	case c.bounded:
		cost.dense = nanoseconds(c.dense.of(float64(w.BoundedTokens), float64(w.Decodes)))
	case w.Sparse:
		t, _ := c.sparse.Seconds(w)
		cost.sparse = nanoseconds(t)
	default:
		cost.dense = c.contexts(w)
	}
}

// chunksOf returns the seconds of dense prefill attention, contexts the time of dense decode
// attention.
func (c *coster) chunksOf(w *sim.Work) float64 {
	t, short := c.prefill.of(w.Prefill)
	c.notes.mark(notePrefill, short > 0, float64(short))
	if w.Decodes > 0 {
		t -= min(t, c.prefill.shared)
	}
	return t
}

func (c *coster) contexts(w *sim.Work) des.Time {
	t, _ := c.dense.Seconds(w)
	return nanoseconds(t)
}

// scores returns the seconds of an indexer for decodes.
func (c *coster) scores(w *sim.Work) float64 {
	if c.selected != nil {
		return c.selected.index(float64(c.indexer.keys(w)), float64(w.Decodes), float64(1+w.Drafts))
	}
	return c.indexer.decode(w)
}

// overLatents returns the times of decode attention over latents: dense, or over the selection of
// the server or an indexer.
func (c *coster) overLatents(w *sim.Work) (dense, sparse des.Time) {
	n := w.DecodeTokens
	if c.bounded && !w.Sparse {
		n = w.BoundedTokens
	}
	if c.selected != nil {
		return 0, nanoseconds(c.selected.decode(float64(n), float64(w.Decodes), float64(1+w.Drafts)))
	}
	requests, queries := float64(w.Decodes), float64(1+w.Drafts)
	if c.bounded { // each query has a selection of its own
		n, requests, queries = n*int64(1+w.Drafts), requests*queries, 1
	}
	t := c.latent.verify(float64(n), requests, queries)
	c.notes.mark(noteLatent, n > 0 && c.latent.grid == nil, 0)
	if c.bounded {
		return 0, nanoseconds(t)
	}
	return nanoseconds(t), 0
}
