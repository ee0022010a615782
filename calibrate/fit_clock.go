package calibrate

import (
	"fmt"
	"math"

	"sparseserve/hw"
)

// leastGain is the share of its time that a higher clock must save linears to be
// told from noise.
const leastGain = 0.02

// fitClock finds how much less linears take before the card lowers its clock, when
// it does, and what a rest gives back (hw: clock), from the times at both ends and
// where those between cross the middle. A sample after a rest is the mean over its
// layers, the first of which run at the higher clock until what the rest gave is used
// up.
func fitClock(s *Samples, p *hw.Profile, from source) {
	p.Clock = hw.Clock{}
	ages, rests := s.of(probeClock), s.of(probeRested)
	if len(ages) < 2 || len(rests) == 0 {
		return
	}
	high, low := ages[0].seconds, ages[len(ages)-1].seconds
	gain := 1 - high/low
	if gain < leastGain {
		return
	}
	share := func(t float64) float64 { return math.Min(math.Max((low-t)/(low-high), 0), 1) } // at the higher clock
	burst, rest := 0.0, 0.0
	for i := range ages[1:] {
		a, b := share(ages[i].seconds), share(ages[i+1].seconds)
		if x, y := milliseconds(ages[i], "after_ms"), milliseconds(ages[i+1], "after_ms"); a >= 0.5 && b < 0.5 {
			burst = x + (y-x)*(a-0.5)/(a-b)
			break
		}
	}
	// least is the misfit of the best rate at which a rest gives back.
	for least, rate := math.Inf(1), 1e-3; rate < 10; rate *= 1.02 {
		misfit := 0.0
		for _, at := range rests {
			timed := float64(at.At("layers")) * high
			given := math.Min(math.Min(burst, timed), rate*milliseconds(at, "rest_ms"))
			misfit += math.Pow(given-share(at.seconds)*timed, 2)
		}
		if misfit < least {
			least, rest = misfit, burst/rate
		}
	}
	if burst == 0 {
		return
	}
	what := fmt.Sprintf("linears of %d tokens after copies within HBM", ages[0].At("tokens"))
	p.Clock = hw.Clock{
		Gain:  from.figure(gain, "share", what+", against the same after "+fmt.Sprint(ages[len(ages)-1].At("after_ms"))+" ms of them"),
		Burst: from.figure(burst*1e3, "ms", what+": until half of that is lost"),
		Rest:  from.figure(rest*1e3, "ms", "copies within HBM after linears, until these have all of it again"),
	}
}

func milliseconds(at datum, axis string) float64 { return 1e-3 * float64(at.At(axis)) }
