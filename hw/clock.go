package hw

import (
	"math"

	"sparseserve/sim/des"
)

// clock is what a card's clock does to prefill. A card draws more than its power
// limit for some tens of milliseconds before it lowers its clock; linears were
// measured without pause, and so at the lower one. What it has in hand after a rest
// is a bucket:
//
//	rested, prefill runs for burst at the higher clock, its linears in 1 - gain of their time
//	for each time that passes without prefill it may again run for burst/rest of it
//
// Prefill attention alone does not reach the limit: its figures are of the higher
// clock. Between linears it is slower and these are faster than alone, and a chunk's
// layers take about what the sum of both says: 0.99 to 1.07 times that in live chunks
// of LWM-7B that follow one another on an H200. The rest has no price.
type clock struct {
	gain        float64
	burst, rest des.Time

	used des.Time // of burst
	at   des.Time // when it was
}

func newClock(p *Profile) clock {
	return clock{gain: p.Clock.Gain.optional(), burst: nanoseconds(p.Clock.Burst.optional()), rest: nanoseconds(p.Clock.Rest.optional())}
}

// share is the part of prefill of t, begun now, that runs at the higher clock.
func (c *clock) share(now, t des.Time) float64 {
	if c.gain == 0 || t <= 0 {
		return 0
	}
	c.used = max(0, c.used-des.Time(float64(now-c.at)*float64(c.burst)/float64(c.rest)))
	c.at = now
	return min(1, float64(c.burst-c.used)/float64(t))
}

// ran notes prefill from the last call of share until now.
func (c *clock) ran(now des.Time) {
	c.used = min(c.burst, c.used+now-c.at)
	c.at = now
}

// gained is how much less linears of t seconds take at the higher clock: what they
// wait for HBM no clock shortens, nor is any faster than the card's peak.
func (l *linears) gained(t, n, gain float64) float64 {
	least, _ := l.seconds(1)
	least = math.Max(least, l.peak.floor(2*n*l.weights, l.weights*l.bytes))
	return math.Max(0, math.Min(gain*t, t-least))
}
