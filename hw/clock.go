package hw

import (
	"math"

	"sparseserve/sim"
	"sparseserve/sim/des"
)

// clock is what a card's clock does to prefill. Linears draw more power than the
// card may. It lets them for some tens of milliseconds after a rest, then lowers its
// clock until they draw what it may. What it has in hand is a bucket:
//
//	rested, linears run for burst at the full clock
//	for each time that passes without prefill they may again for burst/rest of it
//
// with a rest of its own where the GPU waits and where it decodes densely, which draws
// more than copies do, if the profile has them.
//
// Prefill attention draws about what the card may at the full clock, and so neither
// takes from the bucket nor adds to it. The clock follows power over more than a
// layer: below it is one for linears and attention, and lies between what each would
// have alone (lowClock).
type clock struct {
	burst                  des.Time
	rest, waiting, decodes float64 // of burst, for each time that passes

	used des.Time // of burst
	at   des.Time // when it was

	waited, decoded des.Time // since then
}

func newClock(p *Profile) clock {
	c := clock{burst: nanoseconds(p.Clock.Burst.optional())}
	rate := func(f, other Figure) float64 {
		if !f.Set() {
			f = other
		}
		if !f.Set() {
			return 0
		}
		return p.Clock.Burst.SI() / f.SI()
	}
	c.rest, c.waiting, c.decodes = rate(p.Clock.Rest, p.Clock.Rest), rate(p.Clock.RestIdle, p.Clock.Rest), rate(p.Clock.RestDense, p.Clock.Rest)
	return c
}

// rested notes that no prefill ran until now since the last call of it or of ran.
func (c *clock) rested(now des.Time) {
	other := now - c.at - c.waited - c.decoded
	c.used = max(0, c.used-des.Time(float64(other)*c.rest+float64(c.waited)*c.waiting+float64(c.decoded)*c.decodes))
	c.ran(now)
}

// ran notes that prefill ran until now.
func (c *clock) ran(now des.Time) { c.at, c.waited, c.decoded = now, 0, 0 }

// take returns the share of linears of t that run at the full clock.
func (c *clock) take(t des.Time) float64 {
	if t <= 0 {
		return 0
	}
	s := math.Min(1, float64(c.burst-c.used)/float64(t))
	c.used += des.Time(s * float64(t))
	return s
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
// the full clock and hot what of that draws power; low and attention are theirs at the
// low clock.
type chunk struct{ full, hot, low, attention float64 }

// chunk prices linears of so many seconds without pause, of n tokens, and attention of
// so many at the full clock. What linears wait for HBM no clock shortens.
func (c *lowClock) chunk(l *linears, alone, n, attention float64) chunk {
	cold := chunk{full: alone, low: alone, attention: attention}
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
	return chunk{full: full, hot: hot * full, low: low, attention: attention * at}
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
