package whatif

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/internal/stats"
)

// Range is a knob and its values: a list, or steps from Low to High.
type Range struct {
	Knob      Knob
	Values    []string // listed one by one; nil of a range
	Low, High string

	fallible bool // a default range: values that the configuration refuses are left out
}

// ParseRange reads a range of a flag: NAME=LOW..HIGH or NAME=VALUE,VALUE.
func ParseRange(flag string) (r Range, err error) {
	name, values, ok := strings.Cut(flag, "=")
	if !ok || name == "" || values == "" {
		return r, fmt.Errorf("--vary %s: want NAME=LOW..HIGH or NAME=VALUE,VALUE, as in link=0.5..4",
			flag)
	}
	if r.Knob, err = KnobNamed(strings.TrimSpace(name)); err != nil {
		return r, fmt.Errorf("--vary %s: %s: %w", flag, name, err)
	}
	wrong := func(format string, args ...any) (Range, error) {
		return r, fmt.Errorf("--vary %s: %s", flag, fmt.Sprintf(format, args...))
	}
	low, high, ranged := strings.Cut(values, "..")
	words := r.Knob.kind() == reflect.String
	if !ranged {
		for _, v := range config.SplitList(values) {
			if v = strings.TrimSpace(v); v == "" || slices.Contains(r.Values, v) {
				return wrong("a value is empty or listed twice")
			}
			if _, err := number(v); err != nil && !words {
				return wrong("%s is no number", v)
			}
			r.Values = append(r.Values, v)
		}
		return r, nil
	}
	if words {
		return wrong("%s has no numbers between; list its values, as in %s=a,b", r.Knob.Keys[0], name)
	}
	from, err1 := number(low)
	to, err2 := number(high)
	if err1 != nil || err2 != nil || !(from < to) {
		return wrong("want two numbers, the lower first")
	}
	if r.Low, r.High = text(from), text(to); r.Knob.Factor && from <= 0 {
		return wrong("want factors above 0")
	}
	return r, nil
}

// At returns the values of the range: the listed ones, or n = steps values from low to high, spaced
// by a factor if the ends are above 0, else by a difference. Values of integers are rounded.
func (r *Range) At(steps int) []string {
	if r.Values != nil {
		return r.Values
	}
	low, _ := number(r.Low)
	high, _ := number(r.High)
	var values []string
	for i := range steps {
		share := float64(i) / float64(steps-1)
		v := low + share*(high-low)
		if low > 0 {
			v = low * math.Pow(high/low, share)
		}
		switch {
		case i == 0:
			v = low
		case i == steps-1:
			v = high
		}
		if value := r.Knob.round(v); len(values) == 0 || values[len(values)-1] != value {
			values = append(values, value)
		}
	}
	return values
}

// round formats a value for the knob with four digits.
func (k *Knob) round(v float64) string {
	if k.kind() == reflect.Int {
		return text(math.Round(v))
	}
	return strconv.FormatFloat(stats.Significant(v, 4), 'f', -1, 64)
}

// number reads a finite number.
func number(text string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
		err = strconv.ErrRange
	}
	return v, err
}

// text formats a number for a configuration with ten digits, so that decimal figures times a factor
// stay decimal.

func text(v float64) string { return strconv.FormatFloat(stats.Significant(v, 10), 'f', -1, 64) }
