package cost

import (
	"sort"

	"github.com/sparseserve/sparseserve/hw"
)

// lattice interpolates a grid.
type lattice struct {
	axes   []hw.Axis
	times  []float64 // microseconds
	stride [len(hw.Sizes{})]int
}

func newLattice(g *hw.Grid) *lattice {
	return &lattice{axes: g.Axes, times: g.Times, stride: g.Strides()}
}

// seconds returns the time at the given sizes. Below an axis the first point holds, because
// launches dominate. Beyond it the time grows in proportion, and outside is true.
func (l *lattice) seconds(sizes hw.Sizes) (t float64, outside bool) {
	var low [len(sizes)]int
	var part hw.Sizes
	grows := 1e-6
	for i := range l.axes {
		v, at := sizes[i], l.axes[i].At
		last := len(at) - 1
		switch {
		case v <= at[0]:
		case v >= at[last]:
			low[i], outside = last, outside || v > at[last]
			grows *= v / at[last]
		default:
			low[i] = sort.SearchFloat64s(at, v)
			if at[low[i]] != v {
				low[i]--
				part[i] = (v - at[low[i]]) / (at[low[i]+1] - at[low[i]])
			}
		}
	}
	for corner := range 1 << len(l.axes) {
		weight, index := 1.0, 0
		for i := range l.axes {
			step := corner >> i & 1
			if step == 1 {
				weight *= part[i]
			} else {
				weight *= 1 - part[i]
			}
			index += (low[i] + step) * l.stride[i]
		}
		if weight > 0 {
			t += weight * l.times[index]
		}
	}
	return t * grows, outside
}

// GridSeconds returns the time of the grid's kernel at the given sizes.
func GridSeconds(g *hw.Grid, sizes hw.Sizes) float64 {
	if g.OfPrompts() {
		return newPromptGrid(g, sizes[2:]...).seconds(sizes[0], sizes[1])
	}
	t, _ := newLattice(g).seconds(sizes)
	return t
}
