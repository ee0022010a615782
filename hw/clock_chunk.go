package hw

import (
	"math"
)

// chunk holds the times of a layer's linears and prefill attention at the full clock, in seconds.
// At a clock f, relative to the full clock, linears take slope (1/f - 1) longer, and attention
// takes 1/f times as long. At the full clock linears draw hot times the power limit, and attention
// draws the limit. Fits to chunks after 32K tokens and more on H200 and H100 gave 0.98 and 1.06 for
// wgmma, 0.79 for mma.sync.
type chunk struct{ linears, attention, slope, hot float64 }

// at returns the time of linears and attention at clock f, relative to the full clock.
func (c *chunk) at(f float64) float64 { return c.linears + c.slope*(1/f-1) + c.attention/f }

// power returns the mean power at the full clock, weighted by the times at f, relative to the
// limit.
func (c *chunk) power(f float64) float64 {
	all := c.at(f)
	if all == 0 {
		return 0
	}
	return c.hot + (1-c.hot)*c.attention/f/all
}

// steady returns the clock at which back-to-back chunks draw the power limit.
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
