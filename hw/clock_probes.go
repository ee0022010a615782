package hw

import "github.com/sparseserve/sparseserve/sim"

// ClockProbes predicts the times of the clock's probes (calibrate), in seconds per layer, averaged
// over the timed layers. It reads the clock's figures at each call, except Gain. Gain, linears and
// attention are read in NewClockProbes.
type ClockProbes struct {
	p       *Profile
	m       *Model
	linears gemm
	prefill prefillAttention
	chunks  chunks
}

// NewClockProbes prices the probes of a model with KV blocks of blockTokens tokens
// (PrefillSeconds).
func NewClockProbes(p *Profile, m *Model, blockTokens int) *ClockProbes {
	return &ClockProbes{p: p, m: m, linears: newGEMM(p, m),
		prefill: newPrefillAttention(p, m, blockTokens), chunks: newChunks(p, m)}
}

// Rest is the kind of work that a card does between prefills.
type Rest int

// The kinds of rest: copies within HBM, dense decode attention, prefill attention.
const (
	RestCopies Rest = iota
	RestDense
	RestPrefill
)

// powerOf returns the power of a rest at the full clock, relative to the power limit.
func (c *clock) powerOf(kind Rest) float64 {
	switch kind {
	case RestDense:
		return c.memory
	case RestPrefill:
		return 1
	}
	return c.copies
}

// settled sets the clock that a card reaches after running the chunk for a long time.
func (c *clock) settled(w *chunk) {
	if c.filter > 0 {
		c.f, c.measured = w.steady(), 1
	}
}

// layers runs n layers of a chunk and returns the mean time per layer.
func (c *clock) layers(w *chunk, n int) float64 {
	sum := 0.0
	for range n {
		linears, attention := c.run(w, c.at, 0)
		sum += w.at(1) + linears + attention
	}
	return sum / float64(n)
}

// chunk prices a chunk of the given tokens after prefix tokens of its prompt; without attention if
// prefix is negative.
func (c *ClockProbes) chunk(tokens, prefix int) chunk {
	sustained, _ := c.linears.of(float64(tokens))
	attention := 0.0
	if prefix >= 0 {
		attention, _ = c.prefill.of([]sim.Span{{Query: tokens, Prefix: prefix}})
	}
	c.chunks.ratio = c.p.Clock.GEMMSteadyRatio.optional()
	return c.chunks.of(c.linears.least(float64(tokens)), sustained, float64(tokens), attention)
}

// Rested returns the time of linears of n tokens after ran seconds of linears. With rest = 0 the
// card copied for a long time before; with rest > 0 it ran linears for a long time and then rested
// for rest seconds.
func (c *ClockProbes) Rested(n int, ran, rest float64, kind Rest, layers int) float64 {
	k, w := newClock(c.p), c.chunk(n, -1)
	if rest > 0 {
		k.settled(&w)
		k.rest(k.powerOf(kind), 1e9*rest)
	}
	for t := 0.0; t < ran; {
		t += k.layers(&w, 1)
	}
	return k.layers(&w, layers)
}

// Prompt returns the time of linears and attention of the last chunk in a sequence of prompts. Each
// prompt has each chunks of n tokens, chunks in all. Before that, the card ran dense decode
// attention for a long time.
func (c *ClockProbes) Prompt(n, each, chunks int) (last float64) {
	k := newClock(c.p)
	k.measured = k.memory
	for i := range chunks {
		w := c.chunk(n, i%each*n)
		last = k.layers(&w, c.m.Layers)
	}
	return last
}

// Chunk returns the time of linears and attention of a prompt's chunk in a sequence without pause.
func (c *ClockProbes) Chunk(query, prefix int) float64 {
	w := c.chunk(query, prefix)
	return w.at(w.steady())
}
