package calibrate

import (
	"fmt"
	"strings"

	"github.com/sparseserve/sparseserve/hw"
)

// fitVerdict takes how long the CPU needs to hear of a kernel's end and have the
// next one under way: what it pays to submit one and wait for it.
func fitVerdict(s *Samples, p *hw.Profile, from source) {
	p.Host.Verdict = hw.Figure{}
	if sync := s.of(probeSync); len(sync) > 0 {
		p.Host.Verdict = perBlock(sync[0].seconds, from, "submitting one kernel and synchronising")
	}
}

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

// pools says what the largest host pool does to the engines whose models do not
// know of it.
func pools(s *Samples) []string {
	var notes []string
	for _, probe := range []string{probeLoadMemcpy} {
		all := s.of(probe)
		sizes := all.values("pool_mib")
		if len(sizes) == 0 || sizes[len(sizes)-1] == basePool {
			continue
		}
		most := sizes[len(sizes)-1]
		base := map[string]float64{}
		for _, at := range all {
			if at.At("pool_mib") == basePool {
				base[otherAxes(at, "pool_mib")] = at.seconds
			}
		}
		for _, at := range all {
			if t, ok := base[otherAxes(at, "pool_mib")]; ok && at.At("pool_mib") == most {
				notes = append(notes, fmt.Sprintf("%s over a pool of %s, over the same of %s: %.2f", probe, size(most*mib), size(basePool*mib), at.seconds/t))
			}
		}
	}
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
