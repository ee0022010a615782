package calibrate

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// A measurement is uncertain by some microseconds, and a price error within this uncertainty does
// not count. It is half of the median's 95 % interval, at least kernelResolution. Steps of servers
// whose layers wait for the CPU have no such interval, because samples of one server agree with
// each other but differ from another server's. For these it is 1.96 standard deviations between
// visits, over all points of the probe, divided by the root of a point's visits.

// kernelResolution is the variation of one kernel's time between measurements, in seconds. It is
// also the documented resolution of CUDA events.
const kernelResolution = 0.5e-6

// widthOf95 is half a 95 % interval of a normal distribution, in standard deviations.
const widthOf95 = 1.96

// combined returns the uncertainty of the difference of two measurements.
func combined(a, b float64) float64 { return math.Hypot(a, b) }

// missed returns the relative error of a price beyond the measurement's uncertainty.
func (at observation) missed(price float64) float64 {
	return math.Max(0, math.Abs(price-at.seconds)-at.within) / at.seconds
}

// within returns a record's uncertainty in either direction, given the relative standard deviation
// between visits of servers.
func (r Record) within(between map[string]float64) float64 {
	if deviation, of := between[r.Point.Probe]; of {
		visits := float64(len(r.visits()))
		return math.Max(kernelResolution, widthOf95*deviation*r.seconds()/math.Sqrt(visits))
	}
	m := r.Median()
	return math.Max(kernelResolution, (m.High-m.Low)/2)
}

// visits returns the median of each visit in a record of servers.
func (r Record) visits() (medians []float64) {
	for _, of := range slices.Collect(slices.Chunk(r.Samples, drainSamples)) {
		medians = append(medians, medianOf(of).Value)
	}
	return medians
}

// betweenVisits returns, for each probe of such servers, the relative standard deviation between
// visits of the same point, over all points.
func (s *Samples) betweenVisits() map[string]float64 {
	squares, free := map[string]float64{}, map[string]float64{}
	for _, r := range s.Records {
		if visits := r.visits(); probeOf(r.Point.Probe).reduction == byVisits && len(visits) > 1 {
			mean, variance := stat.MeanVariance(visits, nil)
			n := float64(len(visits) - 1)
			squares[r.Point.Probe] += n * variance / (mean * mean)
			free[r.Point.Probe] += n
		}
	}
	out := map[string]float64{}
	for probe, n := range free {
		out[probe] = math.Sqrt(squares[probe] / n)
	}
	return out
}
