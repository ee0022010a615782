package calibrate

import (
	"errors"
	"fmt"
	"slices"
)

// Times on an undisturbed host CPU are repeatable. Two probes depend on it most: saves with one
// memcpy per block during prefill, which two threads launch, and the scatter of FlashD2H's staging.
// A profile of a disturbed host has prices that runs will not pay.

// steadiness lists the probes and the limits above which the host is disturbed. A point's measure
// is the 90th percentile of its samples over their median; a probe's measure is the median over its
// points. Quiet hosts have up to 1.009 and 1.103. The first probe is measured early and may stop
// the run; the second is measured after it and does not.
var steadiness = []steadyLimit{
	{probeLayersMemcpy, 1.025, true},
	{probeSaveFlash, 1.13, false},
}

type steadyLimit struct {
	probe string
	above float64
	stops bool
}

// ErrDisturbed ends a calibration with Options.Steady on a disturbed host.
var ErrDisturbed = errors.New("others use this host's CPU; calibrate when it is quiet")

// disturbed describes the spread of a probe's samples and reports whether to stop. note is "" if
// they are as steady as on a quiet host, or if the probe does not show it.
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
