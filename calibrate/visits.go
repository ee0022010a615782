package calibrate

import (
	"slices"
	"time"
)

// restless are the probes of what the host's CPUs do. What disturbs a CPU, or
// the pages that a point happens to lie in, lasts longer than the point: its
// samples agree with each other and not with its neighbours'. Of servers whose
// layers wait for the CPU each visit is a server of its own: in live runs on an
// H200 decode steps of one request, as much work each, took 7.0 to 7.8 ms from
// request to request, and one request's all about the same.
var restless = append([]string{
	probeSync, probeLoadMemcpy, probeSaveMemcpy, probeSaveFlash,
	probeCallsNone, probeCallsSave,
}, turnProbes...)

// isRestless says whether a point is visited again. Long linears and chunks of prefill
// are too: what the card can keep of its clock differs by a percent or two from second
// to second (two H200s' linears of 2,048 to 16,384 tokens, one as a whole 1 % faster,
// differed by -2.4 to +1.6 % from one number of tokens to the next).
func isRestless(p Point) bool {
	return slices.Contains(restless, p.Probe) || p.Probe == probeChunk || p.Probe == probeLinears && p.At("tokens") >= longLinears
}

// visit is one time that a point is measured.
type visit struct {
	Point
	of   int // visits of this point
	last bool
}

// visits goes over each run of restless points as often as asked, and once over
// all others.
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

// of is the rule for one visit: all of a point's visits together take no longer
// than another point. Servers that requests leave and rounds of the clock have so many
// samples a visit and no more, however long they take.
func (r Rule) of(v visit) Rule {
	r.Time /= time.Duration(v.of)
	r.Most = (r.Most + v.of - 1) / v.of
	switch {
	case slices.Contains(leavingProbes, v.Probe):
		r.Least, r.Most = leavingSamples, leavingSamples
	case slices.Contains(clockProbes, v.Probe):
		r.Least, r.Most, r.Time = clockSamples, clockSamples, time.Minute
	}
	return r
}
