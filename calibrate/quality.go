package calibrate

import (
	"fmt"
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/hw"
)

// Limits of a fit's errors on held-out points, above which a model is flagged. An error is the
// deviation of a price beyond the measurement's uncertainty (resolution.go).
const (
	medianLimit = 0.05
	worstLimit  = 0.15
)

// model is one fitted cost model: its fitted points, its held-out points, and the function that
// prices a point with the finished profile.
type model struct {
	name  string // table of the profile that it fills
	fit   data
	held  data
	price func(p *hw.Profile, at observation) float64 // seconds
}

// judge prices the held-out points with the profile. Without held-out points it prices the fitted
// ones and flags that.
func (m *model) judge(p *hw.Profile) hw.Fit {
	f := hw.Fit{Model: m.name, Samples: len(m.fit) + len(m.held), HeldOut: len(m.held)}
	points := m.held
	if len(points) == 0 {
		points = m.fit
		f.Flags = append(f.Flags, "too few points to hold any out: errors are on the fitted points")
	}
	if len(points) == 0 {
		return f
	}
	var errs []float64
	worst := 0
	for i, at := range points {
		errs = append(errs, at.missed(m.price(p, at)))
		if errs[i] > errs[worst] {
			worst = i
		}
	}
	f.R2 = m.determination(p)
	f.MaxError = round(errs[worst], 4)
	f.MedianError = round(medianOf(errs).Value, 4)
	FlagMedian(&f)
	if f.MaxError > worstLimit {
		f.Flags = append(f.Flags,
			fmt.Sprintf("worst error %.1f %%, above %.0f %%, at %s", 100*f.MaxError, 100*worstLimit,
				points[worst].Key()))
	}
	return f
}

// FlagMedian flags a fit whose median error exceeds the limit.
func FlagMedian(f *hw.Fit) {
	if f.MedianError > medianLimit {
		f.Flags = append(f.Flags,
			fmt.Sprintf("median error %.1f %%, above %.0f %%", 100*f.MedianError, 100*medianLimit))
	}
}

// determination returns R2 of log seconds over all points.
func (m *model) determination(p *hw.Profile) float64 {
	all := slices.Concat(m.fit, m.held)
	var mean, residual, total float64
	for _, at := range all {
		mean += math.Log(at.seconds) / float64(len(all))
	}
	for _, at := range all {
		residual += math.Pow(math.Log(m.price(p, at)/at.seconds), 2)
		total += math.Pow(math.Log(at.seconds)-mean, 2)
	}
	if total == 0 {
		return 1
	}
	return round(1-residual/total, 4)
}

func round(x float64, digits int) float64 {
	scale := math.Pow(10, float64(digits))
	return math.Round(x*scale) / scale
}
