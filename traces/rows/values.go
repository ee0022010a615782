package rows

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/sparseserve/sparseserve/sim/des"
)

// Latest bounds every time. It is well below des.Time's limit of 292 years.
const Latest = 9_000_000_000 * des.Second

// MaxTokens bounds a prompt and an output: a thousand times the longest context of any model.
// Products of two such values fit an int64.
const MaxTokens = 1 << 30

// Tokens parses a token count of at least least. A float with an integral value is valid, because
// pandas writes a column with missing counts as floats.
func Tokens(key, text string, least int) (int, error) {
	text = strings.TrimSpace(text)
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case text == "":
		return 0, Wrong(key, text, "missing or empty; a whole number of tokens is needed")
	case err != nil && !math.IsInf(v, 0), math.IsNaN(v), v != math.Trunc(v), !plainDigits(text):
		return 0, Wrong(key, text, "not a whole number of tokens")
	case v < 0:
		return 0, Wrong(key, text, "negative; a number of tokens is needed")
	case v > MaxTokens:
		return 0, Wrong(key, text, "more than "+strconv.Itoa(MaxTokens)+
			" tokens; is the unit right?")
	case v < float64(least):
		return 0, Wrong(key, text, "must be at least "+strconv.Itoa(least)+
			"; remove the line if the request was never served")
	}
	return int(v), nil
}

// plainDigits reports whether a number is plain decimal: 1_0 and 0x10 are errors, not 10 and 16.
func plainDigits(text string) bool { return !strings.ContainsAny(text, "_xX") }

// Time parses a non-negative time: a number in a unit, or a calendar time as the time since 1970. A
// plain decimal number is exact to the nanosecond, so converted traces keep their times. Unit 0
// allows calendar times alone.
func Time(key, text string, unit des.Time) (des.Time, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return 0, Wrong(key, text, "missing or empty; a time is needed")
	} else if unit == 0 {
		return calendar(key, text, unit)
	}
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil && !math.IsInf(v, 0):
		return calendar(key, text, unit)
	case math.IsNaN(v), !plainDigits(text):
		return 0, Wrong(key, text, "not a time in numbers")
	case v < 0:
		return 0, Wrong(key, text, "negative; times start at 0: add the same to all")
	case v > float64(Latest/unit):
		return 0, Wrong(key, text, "later than 285 years; is the unit right?")
	}
	if t, ok := exactTime(text, unit); ok {
		return t, nil
	}
	return des.Time(math.Round(v * float64(unit))), nil
}

// exactTime parses digits with an optional fraction, to the nanosecond.
func exactTime(text string, unit des.Time) (des.Time, bool) {
	whole, fraction, _ := strings.Cut(text, ".")
	w, err := strconv.ParseUint(whole, 10, 62)
	if err != nil {
		return 0, false
	}
	t := des.Time(w) * unit
	for _, c := range []byte(fraction) {
		unit /= 10
		if c < '0' || c > '9' || unit == 0 {
			return 0, false
		}
		t += des.Time(c-'0') * unit
	}
	return t, true
}

// calendar parses a time such as 2023-11-16 18:17:03.9799600 as the time since 1970. Without a zone
// it is UTC.
func calendar(key, text string, unit des.Time) (des.Time, error) {
	for _, layout := range []string{time.DateTime, "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04:05",
		time.RFC3339, "2006-01-02T15:04:05Z0700"} {
		if t, err := time.Parse(layout, text); err == nil { // accepts a fraction of any length
			if t.Unix() < 0 || t.Unix() > int64(Latest/des.Second) {
				return 0, Wrong(key, text, "outside the years 1970 to 2254")
			}
			return des.Time(t.UnixNano()), nil
		}
	}
	if unit == 0 {
		return 0, Wrong(key, text, "not a time like 2023-11-16 18:17:03.9799600")
	}
	return 0, Wrong(key, text, "not a time in numbers, nor one like 2023-11-16 18:17:03.98")
}
