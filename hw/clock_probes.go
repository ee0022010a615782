package hw

import "github.com/sparseserve/sparseserve/sim"

// ClockProbes prices what the clock's probes time (calibrate), on the mean of the layers that
// are timed, seconds a layer. The clock's figures but Gain are read at each call, Gain,
// linears and attention when it is made.
type ClockProbes struct {
	p       *Profile
	m       *Model
	linears gemm
	prefill prefillAttention
	chunks  chunks
}

// NewClockProbes returns those of a model, with KV blocks of so many tokens (PrefillSeconds).
func NewClockProbes(p *Profile, m *Model, blockTokens int) *ClockProbes {
	return &ClockProbes{p: p, m: m, linears: newGEMM(p, m),
		prefill: newPrefillAttention(p, m, blockTokens), chunks: newChunks(p, m)}
}

// Rest is what a card does between prefills.
type Rest int

// Copies within HBM, dense decode attention, prefill attention.
const (
	RestCopies Rest = iota
	RestDense
	RestPrefill
)

// power of a rest at the full clock, limits.
func (c *clock) powerOf(kind Rest) float64 {
	switch kind {
	case RestDense:
		return c.memory
	case RestPrefill:
		return 1
	}
	return c.copies
}

// settled is the clock of a card on which the chunk has run for long.
func (c *clock) settled(w *chunk) {
	if c.filter > 0 {
		c.f, c.measured = w.steady(), 1
	}
}

// layers runs so many layers of a chunk and returns the mean time of one.
func (c *clock) layers(w *chunk, n int) float64 {
	sum := 0.0
	for range n {
		linears, attention := c.run(w, c.at, 0)
		sum += w.at(1) + linears + attention
	}
	return sum / float64(n)
}

// chunk prices a chunk of so many tokens after so many of its prompt; without
// attention where prefix is below 0.
func (c *ClockProbes) chunk(tokens, prefix int) chunk {
	sustained, _ := c.linears.of(float64(tokens))
	attention := 0.0
	if prefix >= 0 {
		attention, _ = c.prefill.of([]sim.Span{{Query: tokens, Prefix: prefix}})
	}
	c.chunks.ratio = c.p.Clock.GEMMSteadyRatio.optional()
	return c.chunks.of(c.linears.least(float64(tokens)), sustained, float64(tokens), attention)
}

// Rested returns the time of linears of n tokens: of a card that has copied for long and
// then run them for a time, or, where rest is above 0, run them for long and then
// rested for so many seconds.
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

// Prompt returns what the linears and the attention of the last of so many chunks of n
// tokens need: prompts of each chunks one after another, on a card that had done dense
// decode attention for long before.
func (c *ClockProbes) Prompt(n, each, chunks int) (last float64) {
	k := newClock(c.p)
	k.measured = k.memory
	for i := range chunks {
		w := c.chunk(n, i%each*n)
		last = k.layers(&w, c.m.Layers)
	}
	return last
}

// Chunk returns the time of the linears and the attention of a prompt's chunk, without pause.
func (c *ClockProbes) Chunk(query, prefix int) float64 {
	w := c.chunk(query, prefix)
	return w.at(w.steady())
}
