package hw

import (
	"math"
)

// chunk is the linears and the prefill attention of a layer: their times at the
// full clock, seconds, and by how much longer linears are for each unit of 1/f - 1, f a
// share of the full clock. Attention lasts 1/f times as long. At the full clock linears draw hot of
// the power limit, and attention the limit: on Hopper's own instructions 0.98 and 1.06 of it were
// fitted to chunks after 32K tokens and more on an H200 and an H100, by mma.sync 0.79.
type chunk struct{ linears, attention, slope, hot float64 }

// at is the time of both at a share of the full clock.
func (c *chunk) at(f float64) float64 { return c.linears + c.slope*(1/f-1) + c.attention/f }

// power is the mean of what both would draw at the full clock, weighted by their times at f.
func (c *chunk) power(f float64) float64 {
	all := c.at(f)
	if all == 0 {
		return 0
	}
	return c.hot + (1-c.hot)*c.attention/f/all
}

// steady is the clock at which the chunk without pause draws what the card may.
func (c *chunk) steady() float64 {
	f := 1.0
	for range 50 { // power changes little with f
		next := math.Min(1, 1/c.power(f))
		if math.Abs(next-f) < 1e-9 {
			break
		}
		f = next
	}
	return f
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
// Linears of a grid have no gain of their own, because nobody has measured vLLM's GEMMs after a
// pause. They take the gain of this project's kernels of the same shape at the same tokens. Tiles
// of the two end at other tokens, so linears of a grid may fall a little with more tokens: by 0.7 %
// from 768 to 775 tokens of Llama-2-7B on a B200. The tests of law 11 therefore take the gain of
// the most tokens for a grid. To do so here would move TTFT of short prompts on an H100 by 1 to
// 3 %, and with it the comparison with vLLM in docs/validation.md.
type chunks struct {
	ratio float64 // 0: no figures
	// Of the measured shape, by tokens, seconds: its linears without pause, and at the full clock,
	// both straight between points; only of a model of that shape.
	sustained, full curve
	gain            float64 // of the most tokens and more, and of other shapes at all sizes; a share
}

func newChunks(p *Profile, m *Model) (c chunks) {
	c.ratio = p.Clock.GEMMSteadyRatio.optional()
	rows := p.Clock.Gain
	shape := p.nearestShape(m, len(rows), func(i int) string { return rows[i].Shape })
	exact := shape != "" && p.shape(shape).matches(m) && m.Plain() && m.WeightBytesEach == 2
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

// gained is how much less time linears of n tokens need at the full clock, as a share.
func (c *chunks) gained(n float64) float64 {
	if len(c.full.x) == 0 || n >= c.full.last() {
		return c.gain
	}
	without, _ := c.sustained.cost(n)
	at, few := c.full.cost(n)
	if few { // than measured: in proportion
		first, _ := c.sustained.cost(c.full.x[0])
		at = without * c.full.y[0] / first
	}
	return math.Max(1e-6, 1-at/without)
}

// of prices linears of n tokens that last so many seconds without pause, at least so many at any
// clock, and attention of so many at the full clock. Where linears wait for HBM they draw the limit
// at most.
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
