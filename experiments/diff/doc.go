// Package diff compares two result folders: which settings and which figures differ, and which of
// the differences that exceed the seeds' spread.
package diff
