package hw

import (
	"math"

	"github.com/sparseserve/sparseserve/sim/des"
)

// clock is what a card does to its clock so that the power that it measures stays at its limit. A
// kernel draws p f, in limits, at a share f of the full clock, with p a figure of what runs. The
// measurement is slow, and the card then lowers or raises the clock by as much as power is off:
//
//	d measured/dt = (p f - measured)/filter
//	d f/dt        = (1 - measured)/slew,  f <= 1
//
// (Power that grows with the third power of the clock, as frequency and voltage fall
// together, explains an H200's samples worse; with the first, or its root, alike well.)
//
// A prompt's linears draw more than the card may. So its first chunk after a rest is
// fast; its second goes at the clock that the first has called for, which its own
// attention would not; and the first one of a prompt after another begins at the clock
// of that one's last. Copies, waiting, decodes' linears and their dense attention each
// draw less than the limit, and give the clock back the sooner the less they draw. Until then
// decodes' latencies are longer (clock_decode.go).
type clock struct {
	filter, slew float64 // ns; filter 0: no figures

	// Power at the full clock, limits: of memory-bound kernels, and of all else.
	memory, copies float64

	f, measured float64
	at          des.Time // when they were

	ran des.Time // memory-bound kernels since then, but for their latencies
}

// newClock is that of a card that has copied for long.
func newClock(p *Profile) clock {
	f := &p.Clock
	if !f.GEMMSteadyRatio.Set() {
		return clock{f: 1}
	}
	c := clock{
		filter: 1e9 * f.PowerFilter.SI(), slew: 1e9 * f.FrequencySlew.SI(), copies: f.CopyPower.SI(),
		memory: f.CopyPower.SI(),
		f:      1, measured: f.CopyPower.SI(),
	}
	if f.MemoryBoundPower.Set() {
		c.memory = f.MemoryBoundPower.SI()
	}
	return c
}

// rested notes that no chunk ran until now since the last call of it or of run: all that
// did is assumed to have run mixed.
func (c *clock) rested(now des.Time) {
	if c.filter == 0 || now <= c.at {
		return
	}
	all := float64(now - c.at)
	c.rest(c.copies+(c.memory-c.copies)*float64(c.ran)/all, all)
	c.at, c.ran = now, 0
}

// finest is how much of the filter time a piece may last, in which the clock is assumed constant.
const finest = 1. / 16

// rest lets what draws power, less than 1, run for t ns.
func (c *clock) rest(power, t float64) {
	for piece := finest * c.filter; t > piece && (c.f < 1 || c.measured > 1); t -= piece {
		c.advance(power, piece)
	}
	c.advance(power, t)
}

// leastClock of a card, as a share of the full one.
const leastClock = 0.1

// advance lets what draws power at the full clock run for t ns.
func (c *clock) advance(power, t float64) {
	power *= c.f
	fades := math.Exp(-t / c.filter)
	off := t*(1-power) - (c.measured-power)*c.filter*(1-fades)
	c.measured = power + (c.measured-power)*fades
	c.f = math.Max(leastClock, math.Min(1, c.f+off/c.slew))
}

// run lets a layer's chunk run from now on and returns how much longer its linears and
// its attention are than at the full clock, seconds. In the overhead between its kernels
// the clock stands still.
func (c *clock) run(w *chunk, now, overhead des.Time) (linears, attention float64) {
	if c.filter == 0 {
		return 0, 0
	}
	c.rested(now)
	pieces := math.Ceil(1e9 * w.at(c.f) / (finest * c.filter))
	lost, begins := 0.0, 1/c.f-1
	for range int(pieces) {
		c.advance(w.power(c.f), 1e9*w.at(c.f)/pieces)
		ends := 1/c.f - 1
		lost += (begins + ends) / 2
		begins = ends
	}
	lost /= math.Max(1, pieces)
	linears, attention = w.slope*lost, w.attention*lost
	c.at = now + overhead + nanoseconds(w.at(1)+linears+attention)
	return linears, attention
}
