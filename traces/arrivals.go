package traces

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// A clock returns the time of the next request; io.EOF after the last.
type clock interface{ next() (des.Time, error) }

// process is an arrival process. The first request comes one gap after zero, so n requests span n
// gaps.
type process struct {
	gap func() float64 // seconds
	now des.Time
}

// newProcess returns the arrival process of s.
func newProcess(s Spec, seed uint64) *process {
	rng := des.Rand(seed, "traces.arrivals")
	switch s.Arrivals {
	case ArrivalsGamma:
		return &process{gap: gammaGaps(rng, s.Rate, s.Burstiness)}
	case ArrivalsFixed:
		p, n := &process{}, 0.0
		p.gap = func() float64 {
			n++
			return n/s.Rate - p.now.Seconds() // from the start, so that rounding errors do not accumulate
		}
		return p
	case ArrivalsPoisson:
		return &process{gap: func() float64 { return rng.ExpFloat64() / s.Rate }}
	}
	panic("traces: no arrival process " + s.Arrivals)
}

// gammaGaps draws gaps with mean 1/rate and coefficient of variation cv, from a Gamma distribution
// of shape 1/cv^2. cv = 1 is Poisson; a larger cv is burstier.
func gammaGaps(rng *rand.Rand, rate, cv float64) func() float64 {
	shape := 1 / (cv * cv)
	g := distuv.Gamma{Alpha: shape, Beta: shape * rate, Src: rng}
	return g.Rand
}

func (p *process) next() (des.Time, error) {
	gap := p.gap()
	if math.IsNaN(gap) || gap > (rows.Latest-p.now).Seconds() {
		return 0, fmt.Errorf("arrival after %v years: workload.rate is too low for workload.requests",
			int(rows.Latest.Seconds()/(365.25*86400)))
	}
	p.now += des.FromSeconds(gap)
	return p.now, nil
}

// replay divides a file's time by a speed. Both start at the first request.
func replay(at des.Time, speed float64) (des.Time, error) {
	if speed == 1 {
		return at, nil
	}
	t := float64(at) / speed
	if t > float64(rows.Latest) {
		return 0, fmt.Errorf("workload.speed = %v: the trace would last more than %v s", speed,
			rows.Latest.Seconds())
	}
	return des.Time(math.Round(t)), nil
}
