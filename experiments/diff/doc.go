// Package diff compares two result folders: differences of settings and of figures, and the
// differences that exceed the spread over seeds.
package diff
