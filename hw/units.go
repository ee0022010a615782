package hw

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Figure is one number of a profile with its unit and provenance.
type Figure struct {
	Value  float64 `toml:"value"`
	Unit   string  `toml:"unit"`
	From   string  `toml:"from"`   // published | measured | derived | imported
	Source string  `toml:"source"` // publication, measurement, or derivation in words
}

// Provenance values of Figure.From.
const (
	Published = "published"
	Measured  = "measured"
	Derived   = "derived"
	// Imported figures are from published tables of measured kernels.
	Imported = "imported"
)

// dimensions maps each physical dimension to its units in SI.
var dimensions = map[string]map[string]float64{
	"time":       {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
	"rate":       {"TB/s": 1e12, "GB/s": 1e9, "MB/s": 1e6, "GiB/s": 1 << 30},
	"compute":    {"PFLOP/s": 1e15, "TFLOP/s": 1e12, "GFLOP/s": 1e9},
	"size":       {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "MB": 1e6, "GB": 1e9},
	"share":      {"share": 1, "%": 1e-2},
	"tokens":     {"tokens": 1},
	"requests":   {"requests": 1},
	"threads":    {"threads": 1},
	"cores":      {"cores": 1},
	"operations": {"1/s": 1},
	"ratio":      {"x": 1},
	"count":      {"CTAs": 1, "lists": 1, "SMs": 1},
}

// largest and smallest bound a figure of a dimension, in SI; the default is 1e-9 to 1e9. The bounds
// keep step times in the range of a clock; figures of cards are far within.
var (
	largest  = map[string]float64{"time": 100, "rate": 1e18, "compute": 1e21, "size": 1e18}
	smallest = map[string]float64{"time": noTime, "rate": 1e6, "compute": 1e9}
)

// bounds returns the smallest and the largest figure of a dimension, in SI.
func bounds(dim string) (low, high float64) {
	return cmp.Or(smallest[dim], 1e-9), cmp.Or(largest[dim], 1e9)
}

// SI returns the value in seconds, bytes/s, FLOP/s, bytes, or as a plain
// number. The unit is one that Check has accepted.
func (f Figure) SI() float64 {
	for _, units := range dimensions {
		if scale, ok := units[f.Unit]; ok {
			return f.Value * scale
		}
	}
	return math.NaN()
}

// Optional returns the value in SI, or 0 if it is not set.
func (f Figure) Optional() float64 {
	if !f.Set() {
		return 0
	}
	return f.SI()
}

// Set reports whether the figure is given.
func (f Figure) Set() bool { return f.Unit != "" || f.Value != 0 }

// fault is an error of one field of a figure or row.
type fault struct {
	field string
	msg   string
}

// check validates a figure of the given dimension.
func (f Figure) check(dim string) *fault {
	units := dimensions[dim]
	if _, ok := units[f.Unit]; !ok {
		return &fault{"unit", fmt.Sprintf("want a %s in %s, got %q", dim, unitList(units), f.Unit)}
	}
	if math.IsNaN(f.Value) || math.IsInf(f.Value, 0) || f.Value <= 0 {
		return &fault{"value", fmt.Sprintf("want a positive finite number, got %v", f.Value)}
	}
	// with tolerance for rounding of units
	if low, high := bounds(dim); f.SI() < low*(1-1e-9) || f.SI() > high*(1+1e-9) {
		return &fault{"value", fmt.Sprintf(
			"want %g to %g %s, got %v", low/units[f.Unit], high/units[f.Unit], f.Unit, f.Value)}
	}
	if dim == "share" && f.SI() >= 1 {
		return &fault{"value", fmt.Sprintf("want a share below 1, got %v %s", f.Value, f.Unit)}
	}
	switch f.From {
	case Published, Measured, Derived, Imported:
	default:
		return &fault{"from", fmt.Sprintf("want published, measured, derived or imported, got %q",
			f.From)}
	}
	if strings.TrimSpace(f.Source) == "" {
		return &fault{"source", "want a source, or a derivation in words"}
	}
	return nil
}

func unitList(units map[string]float64) string {
	names := slices.Sorted(maps.Keys(units))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(units[b], units[a]) })
	return strings.Join(names, "|")
}
