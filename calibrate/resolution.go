package calibrate

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// A measurement is uncertain by some microseconds, and an error of a price within
// that does not count. The uncertainty is half of the median's 95 % interval,
// and never less than kernelResolution. Steps of servers whose layers wait for the CPU
// have no such interval, as samples of one server agree with each other and not with
// another server's: for these it is 1.96 standard deviations between visits, of all points
// of the probe, over the root of a point's visits.

// kernelResolution is by what one kernel's time differs from measurement to measurement,
// seconds: of the kernels of less than 60 us of three H200s in one kind of host, the medians
// of the same point on two cards differ by less in nine of ten cases, and CUDA documents as
// much as the resolution of its events.
const kernelResolution = 0.5e-6

// widthOf95 is half a 95 % interval of a normal distribution, in standard deviations.
const widthOf95 = 1.96

// combined is the uncertainty of the difference of two measurements.
func combined(a, b float64) float64 { return math.Hypot(a, b) }

// missed is the error of a price beyond the measurement's uncertainty, relative.
func (at observation) missed(price float64) float64 {
	return math.Max(0, math.Abs(price-at.seconds)-at.within) / at.seconds
}

// within is a record's uncertainty, either way, with the relative
// standard deviation between visits of servers.
func (r Record) within(between map[string]float64) float64 {
	if deviation, of := between[r.Point.Probe]; of {
		visits := float64(len(r.visits()))
		return math.Max(kernelResolution, widthOf95*deviation*r.seconds()/math.Sqrt(visits))
	}
	m := r.Median()
	return math.Max(kernelResolution, (m.High-m.Low)/2)
}

// visits are the medians of a record of servers, visit by visit.
func (r Record) visits() (medians []float64) {
	for _, of := range slices.Collect(slices.Chunk(r.Samples, drainSamples)) {
		medians = append(medians, medianOf(of).Value)
	}
	return medians
}

// betweenVisits is the relative standard deviation of one visit from another of the same
// point, by the probe, over all points of each probe of such servers.
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
