package traces

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/internal/nearest"
)

// unknown says that value is none of the known names of a key and which of them is nearest.
func unknown(key, value string, known []string) error {
	msg := fmt.Sprintf("%s = %q: unknown; use %s", key, short(value), strings.Join(known, ", "))
	if n := nearest.Name(value, known); n != "" {
		msg += fmt.Sprintf(" (did you mean %q?)", n)
	}
	return fmt.Errorf("%s", msg)
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
