package calibrate

import (
	"time"
)

// visit is one measurement of a point.
type visit struct {
	Point
	of   int // visits of this point
	last bool
}

// visits repeats each run of restless points the given number of times, and lists all others once.
func visits(all []Point, times int) []visit {
	var out []visit
	for i := 0; i < len(all); {
		end, again := i+1, 1
		if isRestless(all[i]) {
			for again = max(times, 1); end < len(all) && isRestless(all[end]); {
				end++
			}
		}
		for n := range again {
			for _, p := range all[i:end] {
				out = append(out, visit{p, again, n == again-1})
			}
		}
		i = end
	}
	return out
}

// always re-measures all points of a probe. Host noise, and the pages of a point, are correlated
// within one measurement, so its samples agree with each other but not with its neighbours'. Long
// linears and chunks of prefill are re-measured because the card's clock varies from second to
// second.
func always(Point) bool { return true }

// isRestless reports whether a point is re-measured.
func isRestless(at Point) bool {
	p := probeOf(at.Probe)
	return p.again != nil && p.again(at)
}

// of returns the rule for one visit: all visits of a point together take as long as one other
// point. A probe with fixed samples has that many per visit, regardless of their duration.
func (r Rule) of(v visit) Rule {
	r.Time /= time.Duration(v.of)
	r.Most = (r.Most + v.of - 1) / v.of
	if n := probeOf(v.Probe).fixed; n > 0 {
		r.Least, r.Most, r.Time = n, n, time.Minute
	}
	return r
}
