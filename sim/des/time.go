package des

import "time"

// Time is simulated time in nanoseconds since the start of a run. It is an integer so that sums
// do not depend on their order and runs repeat bit for bit.
type Time int64

// Units of simulated time.
const (
	Nanosecond  Time = 1
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond
)

// Seconds returns t in seconds, for reports.
func (t Time) Seconds() float64 { return float64(t) * 1e-9 }

// FromSeconds returns the time nearest to s seconds.
func FromSeconds(s float64) Time {
	if s < 0 {
		return Time(s*1e9 - 0.5)
	}
	return Time(s*1e9 + 0.5)
}

// String prints t as a duration, such as 1.5s.
func (t Time) String() string { return time.Duration(t).String() }
