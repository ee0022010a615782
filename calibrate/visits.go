package calibrate

import (
	"time"
)

// visit is one time that a point is measured.
type visit struct {
	Point
	of   int // visits of this point
	last bool
}

// visits goes over each run of restless points as often as asked, and once over all others.
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

// once keeps one visit of each point, with the time limit that it has among all.
func once(all []visit) []visit {
	var last []visit
	for _, v := range all {
		if v.last {
			last = append(last, v)
		}
	}
	return last
}

// always has every point of a probe visited again: what disturbs the host's CPU, or the pages
// that a point uses, lasts longer than the point, whose samples then agree with each other and
// not with its neighbours'. Long linears and chunks of prefill are visited again for the
// card's clock, which differs from second to second.
func always(Point) bool { return true }

// isRestless reports whether a point is visited again.
func isRestless(at Point) bool {
	p := probeOf(at.Probe)
	return p.again != nil && p.again(at)
}

// of is the rule for one visit: all of a point's visits together last no longer than another
// point. A probe of fixed samples has so many a visit, however long they last.
func (r Rule) of(v visit) Rule {
	r.Time /= time.Duration(v.of)
	r.Most = (r.Most + v.of - 1) / v.of
	if n := probeOf(v.Probe).fixed; n > 0 {
		r.Least, r.Most, r.Time = n, n, time.Minute
	}
	return r
}
