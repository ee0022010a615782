package traces

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/internal/nearest"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// unknown returns an error that lists the known names of a key and suggests the nearest one.
func unknown(key, value string, known []string) error {
	msg := fmt.Sprintf("%s = %q: unknown; use %s", key, rows.Short(value), strings.Join(known, ", "))
	if n := nearest.Name(value, known); n != "" {
		msg += fmt.Sprintf(" (did you mean %q?)", n)
	}
	return fmt.Errorf("%s", msg)
}

// oneOf returns nil if value is known.
func oneOf(key, value string, known []string) error {
	if slices.Contains(known, value) {
		return nil
	}
	return unknown(key, value, known)
}
