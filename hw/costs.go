package hw

import (
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// layerCost is the price of one layer's Work, each part by itself on the card.
type layerCost struct {
	linears, prefill, dense, sparse, scoring, digests des.Time

	pointwise des.Time // of linears
	index     des.Time // of sparse prefill

	chunk chunk // of a layer that prefills; linears and prefill are at the full clock

	latencies latencies // of those of decodes
}

// coster prices Work with one model's cost models on one card. It remembers
// the last Work, as most layers of a step do the same.
type coster struct {
	linears   gemm
	pointwise elementwise
	prefill   prefillAttention
	patterns  sparsePrefill
	dense     memoryBound
	sparse    memoryBound
	scoring   memoryBound
	closing   blockClose
	head      head
	qkv       float64 // share of linears before K and V are there
	chunks    chunks

	progressive progressive
	graphs      *Graphs

	notes notes
	known bool
	work  sim.Work // of the last call; Prefill is the coster's own
	cost  layerCost

	padded sim.Work // to the next captured size
}

func newCoster(p *Profile, m *Model, opts *DeviceOptions) coster {
	c := coster{
		linears:   newGEMM(p, m),
		pointwise: newElementwise(p, m),
		prefill:   newPrefillAttention(p, m, opts.BlockTokens),
		dense:     newDense(p, m),
		sparse:    newSparse(p, m),
		scoring:   newScoring(p, m),
		closing:   newBlockClose(p, m),
		head:      newLMHead(p, m),
		qkv:       float64(m.LayerQKV()) / float64(m.LayerLinears()),
		chunks:    newChunks(p, m),

		progressive: newProgressive(p, m, opts),
		graphs:      &p.Graphs,
	}
	if opts.TopP {
		c.head.sortsLogits(p, m)
	}
	c.patterns = newSparsePrefill(p, m, c.prefill)
	c.notes = newNotes(p, m, &c, opts.LoadEngine)
	return c
}

// layer returns the price of w in one layer, valid until the next call.
func (c *coster) layer(w *sim.Work) *layerCost {
	// Rounds have their price in Device.rounds, lists and tables none.
	if c.known && c.work.SameBatch(w) && len(c.work.Rounds) == len(w.Rounds) {
		return &c.cost
	}
	spans := append(c.work.Prefill[:0], w.Prefill...)
	c.work = *w
	c.work.Prefill = spans
	c.cost = c.price(w)
	c.known = true
	return &c.cost
}

func (c *coster) price(w *sim.Work) layerCost {
	n := &c.notes
	c.padded = *w
	c.padded.Tokens = c.graphs.padded(w.Tokens)
	tokens := float64(c.padded.Tokens)
	lin, beyond := c.linears.Seconds(&c.padded)
	n.mark(noteLinears, beyond, tokens)
	n.mark(noteShape, tokens > 0 && !c.linears.exact, 0)
	pw, beyond := c.pointwise.Seconds(&c.padded)
	n.mark(notePointwise, beyond, tokens)
	pre, short := c.prefill.of(w.Prefill)
	n.mark(notePrefill, short > 0, float64(short))
	index := 0.0
	if len(w.Patterns) > 0 && len(w.Prefill) > 0 {
		pre, index = c.patterns.of(w.Patterns, w.Prefill)
		n.mark(noteSparsePrefill, c.patterns.assumes(w.Patterns), 0)
	}
	cost := layerCost{
		pointwise: nanoseconds(pw), linears: nanoseconds(lin) + nanoseconds(pw),
		prefill: nanoseconds(pre), index: nanoseconds(index),
		scoring: timeOf(&c.scoring, w), digests: timeOf(&c.closing, w),
	}
	if len(w.Prefill) > 0 {
		cost.chunk = c.chunks.of(&c.linears, lin, tokens, pre)
		cost.linears = nanoseconds(cost.chunk.linears) + cost.pointwise
	}
	switch {
	case len(w.Rounds) > 0: // Device.rounds
	case w.Sparse:
		t, beyond := c.sparse.Seconds(w)
		n.mark(noteSparse, beyond, float64(w.DecodeTokens)*c.sparse.bytesEach)
		cost.sparse = nanoseconds(t)
	default:
		t, beyond := c.dense.Seconds(w)
		n.mark(noteDense, beyond, float64(w.DecodeTokens)*c.dense.bytesEach)
		cost.dense = nanoseconds(t)
	}
	cost.latencies = c.latenciesOf(w, &cost)
	return cost
}

func timeOf(c Cost, w *sim.Work) des.Time {
	s, _ := c.Seconds(w)
	return nanoseconds(s)
}
