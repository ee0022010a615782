package calibrate

import (
	"fmt"
	"strings"
)

// observations describes figures that no cost model needs.
func observations(s *Samples) []string {
	var notes []string
	for _, at := range s.of(probeSync) {
		notes = append(notes,
			fmt.Sprintf("an empty kernel, submit and synchronise: %.1f us", at.seconds*1e6))
	}
	return append(notes, pools(s)...)
}

// otherAxes names a point without one of its sizes.
func otherAxes(at observation, but string) string {
	var parts []string
	for _, a := range at.Axes {
		if a.Name != but {
			parts = append(parts, fmt.Sprint(a))
		}
	}
	return strings.Join(parts, " ")
}
