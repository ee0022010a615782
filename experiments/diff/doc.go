// Package diff compares two result folders: which settings and which figures differ, and which of
// the differences the seeds can tell from chance.
package diff
