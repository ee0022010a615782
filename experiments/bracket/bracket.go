// Package bracket finds where an answer changes along a line of values: the largest rate that is
// sustained, the fewest replicas that suffice, the threshold of a question.
//
// A Line has the values that a search tries. Find searches from one value on for the border between
// two answers (this file). Cross looks within a range and knows a third answer, undecided
// (cross.go).
package bracket

import (
	"math"
	"slices"
)

// Tried is a value and its answer.
type Tried struct {
	At    float64
	Below bool // the border; otherwise the value is above it
}

// Line describes the values of a search, all above 0.
type Line struct {
	Start       float64                 // first value
	Least, Most float64                 // values outside are not tried
	Width       float64                 // at which a bracket is narrow, relative to its lower end
	Geometric   bool                    // the middle of a bracket is the geometric mean
	Round       func(float64) float64   // rounds a value before it is tried; nil: no rounding
	Stride      func(tried int) float64 // factor between values outside of a bracket; nil: 2
}

// Ends returns the largest value that is below every value above the border, and the smallest value
// above it: 0 and infinity if there is none.
func Ends(tried []Tried) (low, high float64) {
	high = math.Inf(1)
	for _, v := range tried {
		if !v.Below {
			high = math.Min(high, v.At)
		}
	}
	for _, v := range tried {
		if v.Below && v.At < high {
			low = math.Max(low, v.At)
		}
	}
	return low, high
}

// Turned returns the largest value that is below the border although a smaller value, above, is
// not; ok is false if there is none.
func Turned(tried []Tried) (below, above float64, ok bool) {
	_, above = Ends(tried)
	for _, v := range tried {
		if v.Below && v.At > above {
			below, ok = math.Max(below, v.At), true
		}
	}
	return below, above, ok
}

// Next returns the value to try after those tried. bisects is set if it is within a bracket. more
// is false if the bracket is narrow, or leaves the line.
func (l *Line) Next(tried []Tried) (at float64, bisects, more bool) {
	if len(tried) == 0 {
		return l.Start, false, true
	}
	stride := 2.0
	if l.Stride != nil {
		stride = l.Stride(len(tried))
	}
	low, high := Ends(tried)
	switch {
	case low == 0:
		at = l.round(high / stride)
		return at, false, at >= l.Least
	case math.IsInf(high, 1):
		at = math.Min(l.round(low*stride), l.Most)
		return at, false, at > low
	}
	at, more = l.middle(low, high)
	return at, true, more
}

// Find tries values until Next has no more, and returns them after those known. below answers for a
// value; bisects is as Next has it.
func (l *Line) Find(known []Tried, below func(at float64, bisects bool) (bool, error)) ([]Tried,
	error) {
	tried := slices.Clone(known)
	for {
		at, bisects, more := l.Next(tried)
		if !more {
			return tried, nil
		}
		is, err := below(at, bisects)
		if err != nil {
			return tried, err
		}
		tried = append(tried, Tried{at, is})
	}
}

// middle returns the value between the ends of a bracket; more is false if the bracket is narrow.
func (l *Line) middle(low, high float64) (at float64, more bool) {
	at = (low + high) / 2
	if l.Geometric {
		at = math.Sqrt(low * high)
	}
	at = l.round(at)
	return at, high-low > l.Width*low && low < at && at < high
}

func (l *Line) round(at float64) float64 {
	if l.Round == nil {
		return at
	}
	return l.Round(at)
}
