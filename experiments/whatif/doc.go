// Package whatif varies the hardware and the policy of a configuration and measures the effect on a
// metric.
//
// A Knob (knobs.go) is the varied quantity: figures of the card by factors, keys of a configuration
// by values. ParseRange (ranges.go) parses one from a flag. A Study (study.go) evaluates the
// configuration, each knob's values one at a time and, for a heat map, the values of two knobs
// together. All variants have the seeds, and so the arrivals, of the configuration. evaluate.go
// finds a metric (metrics.go) of variants: goodput by the search of package capacity, others from
// the summaries of runs. Thresholds (thresholds.go) bisect a knob for the value at
// which an answer changes. Result.Files (files.go) are the result files.
package whatif
