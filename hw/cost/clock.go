package cost

import (
	"math"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// clock models a card that lowers its clock to keep its power at the limit. Prefill's linears draw
// more than the limit, so the clock f falls to the one at which the chunk draws the limit. In
// anything else it rises to the full clock. Both take the same time constant:
//
//	f(t) = target + (f - target) exp(-t/settling)
//
// Decodes wait for HBM, which has its own clock, so they take the same time at any f.
type clock struct {
	settling float64  // ns; 0: the card has no figures
	f        float64  // of the full clock
	at       des.Time // when the last chunk ended
}

func newClock(p *hw.Profile) clock {
	return clock{settling: 1e9 * p.Clock.Settling.Optional(), f: 1}
}

// standsStill reports whether the time of w does not depend on the clock.
func (c *clock) standsStill(w *sim.Work) bool { return c.settling == 0 || len(w.Prefill) == 0 }

// run passes a layer's chunk that begins at now. It returns the seconds that its linears and its
// attention take longer than at the full clock. The clock does not change in the overhead between
// kernels.
func (c *clock) run(w *chunk, now, overhead des.Time) (linears, attention float64) {
	if c.settling == 0 {
		return 0, 0
	}
	c.f = c.after(1, float64(now-c.at))
	lost := c.chunk(w)
	linears, attention = w.slope*lost, w.attention*lost
	c.at = now + overhead + nanoseconds(w.at(1)+linears+attention)
	return linears, attention
}

// after returns the clock after t ns on the way to a target.
func (c *clock) after(target, t float64) float64 {
	return target + (c.f-target)*math.Exp(-t/c.settling)
}

// chunk passes a chunk and returns the mean of 1/f - 1. With the clock's exponential, the mean of
// 1/f over t is (1 + settling/t log(f(t)/f(0)))/target.
func (c *clock) chunk(w *chunk) (lost float64) {
	t := 1e9 * w.at(c.f)
	if t == 0 {
		return 0
	}
	target, began := w.steady(), c.f
	c.f = c.after(target, t)
	return math.Max(0, (1+c.settling/t*math.Log(c.f/began))/target-1)
}

// chunk holds the times of a layer's linears and prefill attention at the full clock, in seconds.
// At a clock f, relative to the full clock, linears take slope (1/f - 1) longer, and attention
// takes 1/f times as long. At the full clock linears draw hot times the power limit, and attention
// draws the limit. Fits to chunks after 32K tokens and more on H200 and H100 gave 0.98 and 1.06 for
// wgmma, 0.79 for mma.sync.
type chunk struct{ linears, attention, slope, hot float64 }

// at returns the time of linears and attention at clock f.
func (c *chunk) at(f float64) float64 { return c.linears + c.slope*(1/f-1) + c.attention/f }

// steady returns the clock f at which back-to-back chunks draw the power limit. With x = 1/f they
// take L + (slope + attention) x, of which L + slope x draws hot/x limits and the rest 1/x:
//
//	(slope + attention) x^2 + (L - hot slope - attention) x - hot L = 0,  L = linears - slope
func (c *chunk) steady() float64 {
	if c.slope == 0 {
		return 1
	}
	scaled, fixed := c.slope+c.attention, c.linears-c.slope
	b := fixed - c.hot*c.slope - c.attention
	return 2 * scaled / (math.Sqrt(b*b+4*scaled*c.hot*fixed) - b)
}

// chunks prices chunks by the card's clock. Prefill attention is compute bound, so its time is
// inversely proportional to the clock; GEMMs are partly memory bound:
//
//	t_attention = full/f
//	t_linears   = full + (without pause - full) (1/f - 1)/(1/ratio - 1)
//	p_linears   = 1/ratio
//
// ratio is gemm_steady_ratio, the clock of linears without pause.
//
// GEMMs of a grid have no gain of their own, because vLLM's GEMMs were not measured after a pause.
// They take the gain of this project's kernels of the same shape at the same tokens. The tile sizes
// differ, so the time of a grid's linears may fall slightly with more tokens (by 0.7 % from 768 to
// 775 tokens of Llama-2-7B on a B200). The tests of law 11 therefore take the gain of the most
// tokens for a grid. Doing so here would change TTFT of short prompts on an H100.
type chunks struct {
	ratio float64 // 0: no figures
	// For a model of the measured shape only: seconds of its linears by tokens, without pause and at
	// the full clock, interpolated linearly.
	sustained, full curve
	gain            float64 // at the most tokens and beyond, and for other shapes at all sizes
}

func newChunks(p *hw.Profile, m *llm.Model) (c chunks) {
	c.ratio = p.Clock.GEMMSteadyRatio.Optional()
	rows := p.Clock.Gain
	shape := nearestShape(p, m, len(rows), func(i int) string { return rows[i].Shape })
	exact := shape != "" && p.ShapeOf(shape).Matches(m) && m.Plain() && m.WeightBytesEach == 2
	for _, r := range rows {
		if r.Shape != shape {
			continue
		}
		if c.gain = r.SI(); exact {
			c.sustained = tokenCurve(p.Linears, shape)
			t, _ := c.sustained.cost(float64(r.Tokens))
			c.full.add(float64(r.Tokens), t*(1-r.SI()))
		}
	}
	return c
}

// gained returns the fraction of time that linears of n tokens save at the full clock.
func (c *chunks) gained(n float64) float64 {
	if len(c.full.x) == 0 || n >= c.full.last() {
		return c.gain
	}
	without, _ := c.sustained.cost(n)
	at, few := c.full.cost(n)
	if few { // fewer tokens than measured: in proportion
		first, _ := c.sustained.cost(c.full.x[0])
		at = without * c.full.y[0] / first
	}
	return math.Max(1e-6, 1-at/without)
}

// of prices linears of n tokens that take sustained seconds without pause and at least least
// seconds at any clock, and attention that takes attention seconds at the full clock. Linears that
// wait for HBM draw at most the power limit.
func (c *chunks) of(least, sustained, n, attention float64) chunk {
	if c.ratio == 0 || sustained == 0 {
		return chunk{linears: sustained, attention: attention, hot: 1}
	}
	g := c.gained(n)
	gained := math.Max(0, math.Min(g*sustained, sustained-least))
	computing := gained / (g * sustained)
	hot := 1 + computing*(1/c.ratio-1)
	slope := 0.0
	if gained > 0 {
		slope = gained / (hot - 1)
	}
	// without pause 1/f is hot
	return chunk{linears: sustained - slope*(hot-1), attention: attention, slope: slope, hot: hot}
}

// ClockProbes predicts the times of the clock's probes (calibrate), in seconds per layer. It reads
// the clock's figures at each call, except Gain.
type ClockProbes struct {
	p       *hw.Profile
	linears gemm
	prefill prefillAttention
	chunks  chunks
}

// NewClockProbes prices the probes of a model with KV blocks of blockTokens tokens
// (PrefillSeconds).
func NewClockProbes(p *hw.Profile, m *llm.Model, blockTokens int) *ClockProbes {
	return &ClockProbes{p: p, linears: newGEMM(p, m), prefill: newPrefillAttention(p, m, blockTokens),
		chunks: newChunks(p, m)}
}

// chunk prices a chunk of n tokens with its attention's seconds.
func (c *ClockProbes) chunk(n int, attention float64) chunk {
	tokens := float64(n)
	sustained, _ := c.linears.of(tokens)
	c.chunks.ratio = c.p.Clock.GEMMSteadyRatio.Optional()
	return c.chunks.of(c.linears.least(tokens), sustained, tokens, attention)
}

// Chunk returns the time of linears and attention of a prompt's chunk in a sequence without pause.
func (c *ClockProbes) Chunk(query, prefix int) float64 {
	attention, _ := c.prefill.of([]sim.Span{{Query: query, Prefix: prefix}})
	w := c.chunk(query, attention)
	return w.at(w.steady())
}

// Linears returns the mean time of layers of linears of n tokens, ran seconds after linears began
// to run at the full clock.
func (c *ClockProbes) Linears(n int, ran float64, layers int) (mean float64) {
	k, w := newClock(c.p), c.chunk(n, 0)
	if k.settling == 0 {
		return w.at(1)
	}
	k.f = k.after(w.steady(), 1e9*ran)
	for range layers {
		mean += (w.at(1) + w.slope*k.chunk(&w)) / float64(layers)
	}
	return mean
}
