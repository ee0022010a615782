package traces

import (
	"fmt"
	"slices"
	"strings"
)

// unknown says that value is none of the known names of a key and which of them is nearest.
func unknown(key, value string, known []string) error {
	msg := fmt.Sprintf("%s = %q: unknown; use %s", key, short(value), strings.Join(known, ", "))
	if n := nearest(value, known); n != "" {
		msg += fmt.Sprintf(" (did you mean %q?)", n)
	}
	return fmt.Errorf("%s", msg)
}

// nearest returns the known name fewest edits away from name, or "" when none is close enough
// to be a slip of the hand.
func nearest(name string, known []string) string {
	if len(name) > 64 {
		return ""
	}
	best, least := "", 1+max(2, len(name)/3)
	for _, k := range known {
		if d := edits(strings.ToLower(name), k); d < least {
			best, least = k, d
		}
	}
	return best
}

// edits is the Levenshtein distance between a and b in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next := min(row[j]+1, row[j+1]+1, diagonal+cost)
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}

// oneOf returns nil when value is known.
func oneOf(key, value string, known []string) error {
	if slices.Contains(known, value) {
		return nil
	}
	return unknown(key, value, known)
}

// short truncates a value so that a message is one readable line.
func short(value string) string {
	const most = 60
	if len(value) <= most {
		return value
	}
	return value[:most] + "..."
}

// plural writes a count with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
