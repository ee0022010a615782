package calibrate

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
)

// decades labels powers of ten, 2 and 5 between them where there are few, and
// round numbers where there are none.
type decades struct{}

// Ticks implements plot.Ticker.
func (decades) Ticks(low, high float64) []plot.Tick {
	if !(low > 0) || !(high > low) {
		return nil
	}
	span := math.Log10(high / low)
	var ticks []plot.Tick
	for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
		for digit := 1; digit < 10; digit++ {
			v := float64(digit) * math.Pow(10, e)
			if v < low || v > high {
				continue
			}
			t := plot.Tick{Value: v}
			if digit == 1 || span < 2.5 && (digit == 2 || digit == 5) || span < 1 && digit != 7 && digit != 9 {
				t.Label = plain(v)
			}
			ticks = append(ticks, t)
		}
	}
	labels := 0
	for _, t := range ticks {
		if t.Label != "" {
			labels++
		}
	}
	if labels < 2 { // a fraction of a decade
		ticks = plot.DefaultTicks{}.Ticks(low, high)
		for i, t := range ticks {
			if t.Label != "" {
				ticks[i].Label = plain(t.Value)
			}
		}
	}
	return ticks
}

// tenths labels multiples of 0.1, or of more where there are many.
type tenths struct{}

// Ticks implements plot.Ticker.
func (tenths) Ticks(low, high float64) []plot.Tick {
	step := 1 // tenths
	for (high-low)*10/float64(step) > 10 {
		step *= 2
	}
	var ticks []plot.Tick
	for i := int(math.Ceil(low * 10 / float64(step))); float64(i*step) <= high*10; i++ {
		v := float64(i*step) / 10
		ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'f', 1, 64)})
	}
	return ticks
}

// plain writes a number for people: 0.5, 200, 10k, 4M, 2G, 1e+13.
func plain(v float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if v >= 10*unit.size || v >= unit.size && unit.size > 1e3 {
			return strconv.FormatFloat(v/unit.size, 'g', 3, 64) + unit.name
		}
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) + " %" }

func number(x float64) string { return strconv.FormatFloat(x, 'f', 4, 64) }

// short names a point by what others have otherwise: "16 KiB x 64, pool 2048
// MiB". A name of everything may be wider than the panel.
func short(p Point, others data) string {
	var parts []string
	if p.Shape != "" && slices.ContainsFunc(others, func(o datum) bool { return o.Shape != p.Shape }) {
		parts = append(parts, p.Shape)
	}
	for i, a := range p.Axes {
		if slices.ContainsFunc(others, func(o datum) bool { return len(o.Axes) != len(p.Axes) || o.Axes[i] != a }) {
			parts = append(parts, axisText(a))
		}
	}
	return strings.Join(parts, ", ")
}

func axisText(a Axis) string {
	switch {
	case strings.HasSuffix(a.Name, "bytes"):
		return size(a.Value)
	case a.Name == "pool_mib":
		return "pool " + size(a.Value*mib)
	}
	name := strings.TrimSuffix(a.Name, "_tokens")
	return strconv.FormatInt(a.Value, 10) + " " + name
}

func size(bytes int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{gib, " GiB"}, {mib, " MiB"}, {kib, " KiB"}} {
		if bytes >= unit.size && bytes%unit.size == 0 {
			return strconv.FormatInt(bytes/unit.size, 10) + unit.name
		}
	}
	return strconv.FormatInt(bytes, 10) + " B"
}
