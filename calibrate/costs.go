package calibrate

import (
	"slices"
	"sync"

	"github.com/sparseserve/sparseserve/hw"
)

// cost is one calibrated part of the cost model: its probes, its GPU code, its sizes, and the fit
// of its figures. Each cost is in a file of its name; its prediction is in the file of the same
// name in package hw.
type cost interface {
	// probes lists its kinds of measurement.
	probes() []Probe
	// points adds its sizes to a plan.
	points(p *planner)
	// fit writes its figures into the profile and returns the fitted models.
	fit(s *Samples, p *hw.Profile, from source) []model
}

// costs lists all costs in the order of fitting: a fit may read figures of earlier costs.
var costs = []cost{
	link{}, moving{}, swapIn{}, overlap{}, flashD2H{}, gemm{}, elementwise{}, prefillAttention{},
	sparsePrefill{}, decode{}, sharedDecode{}, continueLatency{}, clock{},
}

// Probes returns all probes.
func Probes() []Probe {
	var all []Probe
	for _, c := range costs {
		all = append(all, c.probes()...)
	}
	return all
}

var probesByName = sync.OnceValue(func() map[string]*Probe {
	all := map[string]*Probe{}
	for _, c := range costs {
		for _, p := range c.probes() {
			all[p.Name] = &p
		}
	}
	return all
})

// probeOf returns the probe of a name, or nil.
func probeOf(name string) *Probe { return probesByName()[name] }

// Shapes for attention: one with as many KV heads as query heads, and one with grouped queries.
var shapes = []string{"llama2-7b", "llama3-8b"}

// manyQueries is a shape with eight query heads per KV head, the maximum of the built-in models. It
// is measured at some points of decode and selection.
const manyQueries = "yi-9b-200k"

// shapeModel returns the model of a shape.
func shapeModel(name string) (*hw.Model, error) {
	m, err := hw.LoadModel(name)
	if err != nil {
		return nil, err
	}
	return &m, nil
}

// mayBeZero are the axes whose value may be 0.
var mayBeZero = []string{"prefix_tokens", "misses", "sink_tokens", "window_tokens", "blocks",
	"columns", "vertical_lines", "slash_lines", "loaded_blocks", "saved_blocks",
	"copied_bytes", "kernel_bytes"}

// fits reports whether the point has the probe's axes and a shape where the probe needs one. Each
// axis is at least 1, except for axes that may be 0.
func (p *Probe) fits(at Point) bool {
	if len(at.Axes) != len(p.Axes) || (at.Shape != "") != p.shaped {
		return false
	}
	for i, a := range at.Axes {
		if a.Name != p.Axes[i] || a.Value < 0 || a.Value > 1<<50 ||
			a.Value == 0 && !slices.Contains(mayBeZero, a.Name) {
			return false
		}
	}
	return true
}

// point makes a point of a probe, sizes in the order of its axes.
func point(probe, shape string, sizes ...int64) Point {
	p := Point{Probe: probe, Shape: shape}
	for i, axis := range probeOf(probe).Axes {
		p.Axes = append(p.Axes, Axis{axis, sizes[i]})
	}
	return p
}
