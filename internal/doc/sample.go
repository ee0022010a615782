package doc

import (
	"cmp"
	"fmt"

	"gonum.org/v1/gonum/stat"

	"github.com/sparseserve/sparseserve/internal/stats"
)

// Sample is the runs that a mean is of.
type Sample struct {
	N int `json:"n,omitempty"` // runs; 0 of a value that is no mean
	// Low and High are the ends of the mean's 95 % interval; nil where it has none.
	Low  *float64 `json:"low,omitempty"`
	High *float64 `json:"high,omitempty"`
	// Runs are the values of single runs. They are shown in place of the interval, where they are
	// too few for one that says more than they do.
	Runs     []float64 `json:"runs,omitempty"`
	Unstable bool      `json:"unstable,omitempty"` // the queue of a run grew without end
	// Rejects marks that a run rejected requests, so that the mean is of the others.
	Rejects bool `json:"rejects,omitempty"`
}

// Fewest is how many runs an interval is shown of. That of two or three runs is wider than what it
// is about.
const Fewest = 5

// Over is the mean of runs, with its interval of Student's t. No quantity here can be negative, so
// an interval of a positive mean ends at 0.
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

// Ends are those of the interval, or the mean itself.
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

// Doubts says what the mean is to be read with; "" where nothing is.
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

// Spread says what the intervals and the small dots of a figure are, of so many runs or what else
// means are of; "" where each value is of one.
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
