package figures

import (
	"cmp"
	"slices"
)

// fig08 is the share of a step's blocks that the last w steps selected too.
func fig08(folders []string) (picture, error) {
	t, err := readTable(folders[0])
	if err != nil {
		return picture{}, err
	}
	values := map[float64][]float64{}
	for row := range t.rows {
		window, share := t.number(row, "window"), t.number(row, "overlap")
		values[window] = append(values[window], 100*share)
	}
	if t.err != nil {
		return picture{}, t.err
	}
	c := curve{series: "overlap ratio"}
	for window, shares := range values {
		c.points = append(c.points, summarise(window, shares, false))
	}
	slices.SortFunc(c.points, func(a, b point) int { return cmp.Compare(a.x, b.x) })
	all := []curve{c}
	return picture{charts: []chart{{
		x: "Window Size", y: "Overlap Ratio (%)", curves: all,
		ticks: []float64{1, 4, 8, 12, 16},
		axis:  axis{80, 101, false},
		most:  100,
	}}}, nil
}
