package calibrate

import "fmt"

// observations describes figures that no cost model needs.
func observations(s *Samples) []string {
	var notes []string
	for _, at := range s.of(probeSync) {
		notes = append(notes,
			fmt.Sprintf("an empty kernel, submit and synchronise: %.1f us", at.seconds*1e6))
	}
	return notes
}
