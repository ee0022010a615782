// Package units parses numbers with a unit, as in "100ms", "64k", "80GiB" or "5%".
package units

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// family is the units of one dimension, each as a whole multiple of the smallest, so that a
// conversion is one exact product and one division.
type family struct {
	of      map[string]float64
	example string
}

var families = []family{
	{map[string]float64{"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "min": 60e9,
		"h": 3600e9}, "100ms"},
	{map[string]float64{"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 1 << 10,
		"MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}, "80GiB"},
	{map[string]float64{"MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12, "GiB/s": 1 << 30}, "3.35TB/s"},
	{map[string]float64{"GFLOP/s": 1, "TFLOP/s": 1e3, "PFLOP/s": 1e6}, "1.2PFLOP/s"},
	{map[string]float64{"%": 1, "share": 100}, "5%"},
	perTime,
	counts,
}

// perTime are rates of things, counts are numbers of things. Their unit names the thing, as in
// requests/s and tokens.
var (
	perTime = family{map[string]float64{"/h": 1, "/min": 60, "/s": 3600}, "90/min"}
	counts  = family{map[string]float64{"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "Ki": 1 << 10,
		"Mi": 1 << 20, "Gi": 1 << 30}, "64k"}
)

// familyOf returns the units that are compatible with a unit, and the counted thing, if any.
func familyOf(unit string) (f family, thing string) {
	for _, f := range families {
		if f.of[unit] > 0 {
			return f, ""
		}
	}
	if thing, ok := strings.CutSuffix(unit, "/s"); ok {
		return perTime, thing
	}
	return counts, unit
}

var number = regexp.MustCompile(`^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?`)

// Parse reads a number with an optional unit and returns it in the given unit, such as "s", "GiB",
// "share", "requests/s" or "tokens"; "" accepts plain numbers only. k is 1000 and Ki 1024; K is
// refused because it is used for both. The error describes the fault without repeating the text.
func Parse(text, unit string) (float64, error) {
	text = strings.TrimSpace(text)
	digits := number.FindString(text)
	x, err := strconv.ParseFloat(digits, 64)
	if digits == "" || err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, errors.New("is not a number")
	}
	suffix := strings.TrimSpace(text[len(digits):])
	if suffix == "" {
		return x, nil
	}
	f, thing := familyOf(unit)
	if unit == "" {
		return 0, fmt.Errorf("has the unit %q", suffix)
	}
	base := f.of[unit]
	if thing != "" {
		base = f.of[strings.TrimPrefix(unit, thing)]
		suffix = strings.TrimSpace(strings.Replace(suffix, thing, "", 1))
	}
	if scale := f.of[suffix]; scale > 0 {
		return x * scale / base, nil
	}
	if suffix == "K" && f.of["k"] > 0 {
		return 0, fmt.Errorf("has K, which is 1000 to some and 1024 to others; write %sk or %[1]sKi",
			digits)
	}
	return 0, fmt.Errorf("has the unit %q", suffix)
}

// Example returns a sample value with its usual unit for a given unit; "" if plain numbers are
// usual, as for GPUs.
func Example(unit string) string {
	f, thing := familyOf(unit)
	if f.example == counts.example && thing != "tokens" {
		return ""
	}
	return f.example
}
