package hw

import (
	"math"

	"sparseserve/sim"
	"sparseserve/sim/des"
)

// clock is what a card's clock does to prefill, whose linears draw more power than the
// card may, and to decodes behind it. The card lets no clock be higher than a limit, which follows what runs:
//
//	d limit/dt = (steady - limit)/settle       while a layer prefills, steady its clock without pause (lowClock)
//	d limit/dt = (most - limit)/rise           else
//
// in shares of the full clock. Most is above 1, by as much as keeps rested linears at
// the full clock for burst before they feel the limit; rise is such that the limit of a
// card that has run linears for long is back at the full clock after rest. Waiting,
// decodes' dense attention and decodes' linears may each have a rest of their own; the
// last two draw more than copies do. All else of a step counts as copies.
//
// So a prompt's first chunk behind a rest is fast and its second is not, and one behind
// another prompt's last, which had more attention beside its linears and a higher
// clock, begins at that.
//
// Decodes live on HBM and feel a share of the clock alone: a layer without a chunk that
// takes t at the full clock takes
//
//	t (1 + share (1/f - 1)), f = min(1, limit)
//
// by the limit when it begins: a layer is much shorter than the limit takes to change.
type clock struct {
	settle, most float64 // ns, share; settle 0: no figures
	share        float64 // of a layer of decodes

	// Rise of each, ns.
	rest, waiting, dense, linears float64

	limit float64
	at    des.Time // when it was

	waited, ranDense, ranLinears des.Time // since then; dense attention and linears of decodes
}

func newClock(p *Profile) clock {
	f := &p.Clock
	if !f.Settle.Set() {
		return clock{}
	}
	alone := f.Alone.SI()
	most := alone + (1-alone)*math.Exp(f.Burst.SI()/f.Settle.SI())
	of := func(f, other Figure) float64 {
		if !f.Set() {
			f = other
		}
		return 1e9 * f.SI() / math.Log((most-alone)/(most-1))
	}
	return clock{
		settle: 1e9 * f.Settle.SI(), most: most, limit: most,
		rest: of(f.Rest, f.Rest), waiting: of(f.RestIdle, f.Rest), dense: of(f.RestDense, f.Rest), linears: of(f.RestLinears, f.Rest),
		share: f.Decode.optional(),
	}
}

// rested notes that no layer whose clock is low ran until now since the last call of it
// or of ran.
func (c *clock) rested(now des.Time) {
	if c.settle == 0 {
		return
	}
	other := now - c.at - c.waited - c.ranDense - c.ranLinears
	passed := float64(other)/c.rest + float64(c.waited)/c.waiting + float64(c.ranDense)/c.dense + float64(c.ranLinears)/c.linears
	c.limit = c.most - (c.most-c.limit)*math.Exp(-passed)
	c.ran(now)
}

// ran notes that such a layer ran until now.
func (c *clock) ran(now des.Time) { c.at, c.waited, c.ranDense, c.ranLinears = now, 0, 0, 0 }

// longer is how many times as long a layer of decodes that begins now takes as at the
// full clock. No layer whose clock is low ran since the last call of rested or ran.
func (c *clock) longer(now des.Time) float64 {
	if c.share == 0 {
		return 1
	}
	c.rested(now)
	return 1 + c.share*(1/math.Min(1, c.limit)-1)
}

// finest is how much of settle a piece of a layer may take, in which the clock is taken
// to change evenly.
const finest = 1. / 16

// run lets a layer's prefill run. It takes low at its steady clock and full at the full
// one, and between as 1/clock does. The share of the way from low to full is returned:
// below 0 where the limit comes from below.
func (c *clock) run(steady float64, full, low des.Time) float64 {
	if c.settle == 0 || steady >= 1 || low <= 0 {
		return 0
	}
	if math.Abs(c.limit-steady) < 1e-4 {
		c.limit = steady
		return 0
	}
	pieces := math.Ceil(float64(low) / (finest * c.settle))
	share := func() float64 { return 1 - (1/math.Min(1, c.limit)-1)/(1/steady-1) }
	sum, begins := 0.0, share()
	for range int(pieces) {
		t := (float64(low) + begins*float64(full-low)) / pieces
		c.limit = steady + (c.limit-steady)*math.Exp(-t/c.settle)
		ends := share()
		sum += (begins + ends) / 2
		begins = ends
	}
	return sum / pieces
}

// Rest is what a card does between prefills.
type Rest int

// Copies within HBM, nothing, dense decode attention.
const (
	RestCopies Rest = iota
	RestIdle
	RestDense
)

// RestedSeconds returns what a layer's linears of n tokens take on the mean of some
// layers: of a card that has rested for long and then run them for a time, or, where
// rest is above 0, run them for long and then rested for so many seconds.
func (p *Profile) RestedSeconds(m *Model, n int, ran, rest float64, kind Rest, layers int) float64 {
	k, l := newClock(p), newLinears(p, m)
	c := newLowClock(p, m)
	alone, _ := l.seconds(float64(n))
	at := c.chunk(&l, alone, float64(n), 0)
	full, low := nanoseconds(at.full), nanoseconds(at.low)
	next := func() float64 { return at.low + k.run(at.steady, full, low)*(at.full-at.low) }
	if rest > 0 {
		k.limit = at.steady
		t := nanoseconds(rest)
		switch kind {
		case RestIdle:
			k.waited = t
		case RestDense:
			k.ranDense = t
		}
		k.rested(t)
	}
	for t := 0.0; t < ran; {
		t += next()
	}
	sum := 0.0
	for range layers {
		sum += next()
	}
	return sum / float64(layers)
}

// PromptSeconds returns what the linears and the attention of a chunk of so many tokens
// take in a layer, which is chunk i of prompts of each chunks one behind another, of a
// card that had rested for long before the first.
func (p *Profile) PromptSeconds(m *Model, chunkTokens, each, i int) float64 {
	k, l, a, c := newClock(p), newLinears(p, m), newPrefillAttention(p, m), newLowClock(p, m)
	alone, _ := l.seconds(float64(chunkTokens))
	sum := 0.0
	for before := range i + 1 {
		attention, _ := a.seconds([]sim.Span{{Query: chunkTokens, Prefix: before % each * chunkTokens}})
		at := c.chunk(&l, alone, float64(chunkTokens), attention)
		full, low := at.full+attention, at.low+at.attention
		sum = 0
		for range m.Layers {
			sum += low + k.run(at.steady, nanoseconds(full), nanoseconds(low))*(full-low)
		}
	}
	return sum / float64(m.Layers)
}

// WornDecodeSeconds returns what the linears and the dense attention of some requests
// with so much context each take in a layer, so many seconds after linears of ran tokens
// that had run for long; between, the card decoded the same.
func (p *Profile) WornDecodeSeconds(m *Model, ran, requests, context int, after float64) float64 {
	k, l, c := newClock(p), newLinears(p, m), newLowClock(p, m)
	alone, _ := l.seconds(float64(ran))
	linears, _ := l.seconds(float64(requests))
	attention := p.DenseDecodeSeconds(m, int64(requests)*int64(context), requests)
	k.limit = c.chunk(&l, alone, float64(ran), 0).steady
	k.ranDense = nanoseconds(after * attention / (linears + attention))
	k.ranLinears = nanoseconds(after) - k.ranDense
	return (linears + attention) * k.longer(nanoseconds(after))
}

// lowClock is the clock of a card that prefills without pause, as a share of the full
// one. Power grows with the third power of the clock (frequency and voltage fall
// together), and the card holds its mean over a layer:
//
//	1/f^3 = 1 + x (1/alone^3 - 1)
//
// with alone the clock of linears without pause, and x the share of time that linears
// have beside prefill attention, whose own clock is the full one. An H200 of 1,980 MHz
// that reads 1,417 MHz under linears of 2,048 tokens of LWM-7B read 1,497 with x =
// 0.73 and 1,561 with 0.57; this says 1,508 and 1,577. What is fitted is the time of
// both together, and alone is what explains it, lower than a clock that is read: both
// are taken to be as fast as the clock, which attention is not quite.
type lowClock struct {
	alone float64 // 0: no figures
	gain  curve   // tokens; how much less time linears take at the full clock, as a share
}

func newLowClock(p *Profile, m *Model) lowClock {
	c := lowClock{alone: p.Clock.Alone.optional()}
	if c.alone == 0 {
		return c
	}
	rows := p.Clock.Gain
	shape := p.nearestShape(m, len(rows), func(i int) string { return rows[i].Shape })
	for _, r := range rows {
		if r.Shape == shape {
			c.gain.add(float64(r.Tokens), r.SI())
		}
	}
	return c
}

// chunk is a layer's linears and prefill attention. Of linears full is their time at
// the full clock; low and attention are their times at the clock without pause, steady
// of the full one.
type chunk struct{ full, low, attention, steady float64 }

// chunk prices linears of so many seconds without pause, of n tokens, and attention of
// so many at the full clock. What linears wait for HBM no clock shortens.
func (c *lowClock) chunk(l *linears, alone, n, attention float64) chunk {
	cold := chunk{full: alone, low: alone, attention: attention, steady: 1}
	if c.alone == 0 || alone == 0 {
		return cold
	}
	g, _ := c.gain.logLinear(n)
	least, _ := l.seconds(1)
	least = math.Max(least, l.peak.floor(2*n*l.weights, l.weights*l.bytes))
	gained := math.Max(0, math.Min(g*alone, alone-least))
	if gained == 0 {
		return cold
	}
	hot := gained / (g * alone) // of linears: what a clock shortens
	work := alone * c.alone     // of linears at the full clock if they could draw what they need
	slow := func(x float64) float64 { return math.Cbrt(1 + x*(math.Pow(c.alone, -3)-1)) }
	at := slow(hot * work / (work + attention))
	full := alone - gained
	low := math.Max(full, alone*(1-hot+hot*at/slow(hot)))
	return chunk{full: full, low: low, attention: attention * at, steady: 1 / at}
}

// ChunkSeconds returns the time of the linears and the attention of a prompt's chunk
// in one layer, without pause.
func (p *Profile) ChunkSeconds(m *Model, query, prefix int) float64 {
	l, a, c := newLinears(p, m), newPrefillAttention(p, m), newLowClock(p, m)
	alone, _ := l.seconds(float64(query))
	attention, _ := a.seconds([]sim.Span{{Query: query, Prefix: prefix}})
	at := c.chunk(&l, alone, float64(query), attention)
	return at.low + at.attention
}
