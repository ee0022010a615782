package calibrate

import (
	"slices"
	"strconv"
	"strings"
)

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) + " %" }

func number(x float64) string { return strconv.FormatFloat(x, 'f', 4, 64) }

// short names a point by the sizes that differ among the others: "16 KiB x 64, pool 2048 MiB". A
// complete name may be wider than the panel.
func short(p Point, others data) string {
	var parts []string
	if p.Shape != "" && slices.ContainsFunc(others,
		func(o observation) bool { return o.Shape != p.Shape }) {
		parts = append(parts, p.Shape)
	}
	for i, a := range p.Axes {
		if slices.ContainsFunc(others, func(o observation) bool {
			return len(o.Axes) != len(p.Axes) ||
				o.Axes[i] != a
		}) {
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
	value := strconv.FormatInt(a.Value, 10)
	name := strings.TrimSuffix(a.Name, "_tokens")
	if words, ok := strings.CutSuffix(name, "_ms"); ok {
		return words + " " + value + " ms"
	}
	name = strings.ReplaceAll(name, "_", " ")
	if one, plural := strings.CutSuffix(name, "s"); plural {
		if a.Value == 1 {
			name = one
		}
		return value + " " + name
	}
	return name + " " + value
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
