// Package whatif varies the hardware and the policy of a configuration and finds what that does to
// a metric.
//
// A Knob (knobs.go) is what varies: figures of the card by factors, keys of a configuration by
// values; ParseRange (ranges.go) reads one from a flag. A Study (study.go) prices the
// configuration, each knob's values one at a time and, for a heat map, the values of two knobs
// together; every variant has the seeds, and so the arrivals, of the configuration. Evaluators
// (evaluate.go) find a metric (metrics.go) of variants: goodput by the search of the package
// capacity, others from the summaries of runs. Thresholds (thresholds.go) bisect a knob for the
// value at which an answer changes. Write (files.go) writes what was found.
package whatif
