package hw

import (
	"math"

	"github.com/sparseserve/sparseserve/sim/des"
)

// clock models a card that lowers its clock to keep its measured power at the limit. A kernel draws
// p f power limits at a share f of the full clock; p depends on the kernel. The measurement is
// slow, and the card changes the clock in proportion to the excess power:
//
//	d measured/dt = (p f - measured)/filter
//	d f/dt        = (1 - measured)/slew,  f <= 1
//
// (Power proportional to f^3, because voltage falls with frequency, explains an H200's samples
// worse. Power proportional to f, or to its root, explains them equally well.)
//
// A prompt's linears draw more than the limit. The first chunk after a rest is therefore fast, and
// the second runs at the clock that the first has caused. The first chunk of the next prompt begins
// at the clock of the last chunk before it. Copies, waits, decodes' linears and dense decode
// attention each draw less than the limit and restore the clock, the faster the less they draw.
// Until then decodes' latencies are longer (clock_decode.go).
type clock struct {
	filter, slew float64 // ns; filter 0: no figures

	// Power at the full clock, in limits: of memory-bound kernels, and of all other activity.
	memory, copies float64

	f, measured float64
	at          des.Time // when they were

	ran des.Time // time of memory-bound kernels since then, without their latencies
}

// newClock returns the clock of a card that has copied for a long time.
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

// rested passes the time without chunks since the last call of rested or run. The kernels in it are
// assumed to run in a uniform mix.
func (c *clock) rested(now des.Time) {
	if c.filter == 0 || now <= c.at {
		return
	}
	all := float64(now - c.at)
	c.rest(c.copies+(c.memory-c.copies)*float64(c.ran)/all, all)
	c.at, c.ran = now, 0
}

// finest is the largest integration step, relative to the filter time.
const finest = 1. / 16

// rest passes t ns at the given power, less than 1.
func (c *clock) rest(power, t float64) {
	for piece := finest * c.filter; t > piece && (c.f < 1 || c.measured > 1); t -= piece {
		c.advance(power, piece)
	}
	c.advance(power, t)
}

// leastClock is the lower bound of the clock, relative to the full clock.
const leastClock = 0.1

// advance passes t ns at a power given for the full clock.
func (c *clock) advance(power, t float64) {
	power *= c.f
	fades := math.Exp(-t / c.filter)
	off := t*(1-power) - (c.measured-power)*c.filter*(1-fades)
	c.measured = power + (c.measured-power)*fades
	c.f = math.Max(leastClock, math.Min(1, c.f+off/c.slew))
}

// run passes a layer's chunk and returns the extra seconds of its linears and attention over the
// full clock. The clock does not change in the overhead between kernels.
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
