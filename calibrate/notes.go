package calibrate

import (
	"fmt"
	"strings"
)

// observations are figures that no cost model needs, in words.
func observations(s *Samples) []string {
	var notes []string
	for _, o := range []struct{ probe, what string }{{probeSync, "submit and synchronise"}} {
		for _, at := range s.of(o.probe) {
			notes = append(notes, fmt.Sprintf("an empty kernel, %s: %.1f us", o.what, at.seconds*1e6))
		}
	}
	notes = append(notes, unsteady(s)...)
	notes = append(notes, pools(s)...)
	return notes
}

// otherAxes names a point but for one size.
func otherAxes(at datum, but string) string {
	var parts []string
	for _, a := range at.Axes {
		if a.Name != but {
			parts = append(parts, fmt.Sprint(a))
		}
	}
	return strings.Join(parts, " ")
}
