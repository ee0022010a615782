package doc

import (
	"cmp"
	"fmt"

	"gonum.org/v1/gonum/stat"

	"github.com/sparseserve/sparseserve/internal/stats"
)

// Sample describes the runs behind a mean.
type Sample struct {
	N int `json:"n,omitempty"` // runs; 0 of a value that is no mean
	// Low and High are the ends of the mean's 95 % interval; nil if it has none.
	Low  *float64 `json:"low,omitempty"`
	High *float64 `json:"high,omitempty"`
	// Runs are the values of single runs. They are shown instead of the interval if there are fewer
	// than Fewest.
	Runs     []float64 `json:"runs,omitempty"`
	Unstable bool      `json:"unstable,omitempty"` // the queue of a run grew without end
	// Rejects is set if a run rejected requests, so the mean covers only the others.
	Rejects bool `json:"rejects,omitempty"`
}

// Fewest is the smallest number of runs for which an interval is shown. With two or three runs the
// interval is wider than the effect.
const Fewest = 5

// Over returns the mean of runs with its Student's t interval. No quantity here can be negative, so
// the interval of a positive mean ends at 0.
func Over(values []float64) (mean float64, s Sample) {
	mean, s.N = stat.Mean(values, nil), len(values)
	if len(values) < 2 {
		return mean, s
	}
	_, half := stats.Mean(values, 0.95)
	low, high := mean-half, mean+half
	if mean >= 0 {
		low = max(low, 0)
	}
	s.Low, s.High = &low, &high
	if len(values) < Fewest {
		s.Runs = values
	}
	return mean, s
}

// Ends returns the ends of the interval, or the mean itself.
func (s *Sample) Ends(mean float64) (low, high float64) {
	if s.Low == nil || s.High == nil {
		return mean, mean
	}
	return *s.Low, *s.High
}

// Shown reports whether the interval is shown.
func (s *Sample) Shown() bool {
	return s.Low != nil && s.High != nil && *s.High > *s.Low && s.Runs == nil
}

// Doubts returns the caveats of the mean; "" if there are none.
func (s *Sample) Doubts() string {
	switch {
	case s.Unstable && s.Rejects:
		return "unstable queue, requests rejected"
	case s.Unstable:
		return "unstable queue"
	case s.Rejects:
		return "requests rejected"
	}
	return ""
}

// Spread explains the intervals and small dots of a figure, whose means are over several `of` (such
// as runs); "" if every value is a single run.
func (f *Figure) Spread(of string) string {
	least, most, dots := 0, 0, false
	add := func(s *Sample) {
		if s.N < 2 || s.Low == nil || *s.High <= *s.Low {
			return
		}
		least, most = cmp.Or(min(cmp.Or(least, s.N), s.N), s.N), max(most, s.N)
		dots = dots || s.Runs != nil
	}
	for _, c := range f.Charts {
		for i := range c.Lines {
			for j := range c.Lines[i].Points {
				add(&c.Lines[i].Points[j].Sample)
			}
		}
		for i := range c.Bars {
			add(&c.Bars[i].Sample)
		}
	}
	count := fmt.Sprint(least)
	if most > least {
		count += fmt.Sprint(" to ", most)
	}
	text := "Whiskers: 95 %% interval of the mean of %s %s."
	switch {
	case most == 0:
		return ""
	case dots:
		text = "Small dots: each of %s %s; five or more have a 95 %% interval of the mean."
	}
	return fmt.Sprintf(text, count, of)
}
