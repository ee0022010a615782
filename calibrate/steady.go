package calibrate

import (
	"errors"
	"fmt"
	"slices"
)

// A host's CPU has the same times again where nobody else disturbs it. How
// steady it is shows in the probes that ask most of it: saves with a memcpy a block
// during prefill, whose calls two threads make, and the threads that scatter FlashD2H's
// staging. A profile made on a disturbed host has prices that runs will not pay.

// steadiness is the 90th percentile of a point's samples over their median, of three the largest,
// of the median point of a probe, and the limit above which the host is disturbed: quiet hosts have
// up to 1.009 and 1.103. The first is measured early, and determines whether to stop; the second
// goes on to the end of the load probes.
var steadiness = []steadyLimit{
	{probeLayersMemcpy, 1.025, true},
	{probeSaveFlash, 1.13, false},
}

type steadyLimit struct {
	probe string
	above float64
	stops bool
}

// ErrDisturbed ends a calibration that is to stop on a disturbed host.
var ErrDisturbed = errors.New("others use this host's CPU; calibrate when it is quiet")

// disturbed describes by how much a probe's samples differ, "" where they are as steady as on a
// quiet host or do not show it, and whether to stop for it.
func disturbed(s *Samples, probe string) (note string, stop bool) {
	i := slices.IndexFunc(steadiness, func(l steadyLimit) bool { return l.probe == probe })
	if i < 0 {
		return "", false
	}
	limit := steadiness[i]
	var spreads []float64
	for _, r := range s.Records {
		if r.Point.Probe == probe && len(r.Samples) >= 3 {
			sorted := slices.Sorted(slices.Values(r.Samples))
			spreads = append(spreads, sorted[len(sorted)*9/10]/r.Median().Value)
		}
	}
	if spread := medianOf(spreads).Value; spread > limit.above { // false for NaN
		return fmt.Sprintf("the host's CPU is disturbed: of equal samples of %s one in ten takes %.3f "+
			"times "+
			"the median, on quiet hosts less than %.3f", probe, spread, limit.above), limit.stops
	}
	return "", false
}

// mustStop reports whether samples come from a host too disturbed to continue.
func mustStop(s *Samples) bool {
	return slices.ContainsFunc(steadiness, func(limit steadyLimit) bool {
		_, stop := disturbed(s, limit.probe)
		return stop
	})
}

// unsteady returns the notes of all disturbed probes.
func unsteady(s *Samples) (notes []string) {
	for _, limit := range steadiness {
		if note, _ := disturbed(s, limit.probe); note != "" {
			notes = append(notes, note)
		}
	}
	return notes
}
