package calibrate

import "math"

// A measurement is uncertain by some microseconds, and a price error within this uncertainty does
// not count. It is half of the median's 95 % interval, at least kernelResolution.

// kernelResolution is the variation of one kernel's time between measurements, in seconds. It is
// also the documented resolution of CUDA events.
const kernelResolution = 0.5e-6

// missed returns the relative error of a price beyond the measurement's uncertainty.
func (at observation) missed(price float64) float64 {
	return math.Max(0, math.Abs(price-at.seconds)-at.within) / at.seconds
}

// within returns a record's uncertainty in either direction.
func (r Record) within() float64 {
	m := r.Median()
	return math.Max(kernelResolution, (m.High-m.Low)/2)
}
