package calibrate

import (
	"slices"
	"strconv"
)

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) + " %" }

func number(x float64) string { return strconv.FormatFloat(x, 'f', 4, 64) }

// short names a point by the sizes that differ among the others. A complete name may be wider than
// the panel.
func short(p Point, others data) string {
	differs := func(a Axis) bool {
		return slices.ContainsFunc(others, func(o observation) bool {
			return len(o.Axes) != len(p.Axes) || !slices.Contains(o.Axes, a)
		})
	}
	named := Point{Axes: slices.DeleteFunc(slices.Clone(p.Axes), func(a Axis) bool {
		return !differs(a)
	})}
	if slices.ContainsFunc(others, func(o observation) bool { return o.Shape != p.Shape }) {
		named.Shape = p.Shape
	}
	return named.Key()
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
