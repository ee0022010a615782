package calibrate

import (
	"slices"
	"sync"

	"github.com/sparseserve/sparseserve/hw"
)

// cost is one part of the cost model as it is calibrated: what is measured of it, how a GPU
// does it, at which sizes, and how its figures follow from the samples. Each is in a file of
// its name; its prediction is in the file of that name of package hw.
type cost interface {
	// probes lists its kinds of measurement.
	probes() []Probe
	// points adds its sizes to a plan.
	points(p *planner)
	// fit writes its figures into the profile and returns the fitted models.
	fit(s *Samples, p *hw.Profile, from source) []model
}

// costs lists all of them in the order of fitting: a fit may read figures of those before it.
var costs = []cost{
	link{}, loadMemcpy{}, flashH2D{}, streamH2D{}, swapIn{}, saveMemcpy{}, gpuScatter{},
	saveOverlap{}, loadOverlap{}, flashD2H{}, gemm{}, elementwise{}, prefillAttention{},
	sparsePrefill{}, decode{}, sharedDecode{}, scoring{}, progressive{}, continueLatency{},
	blockClose{}, clock{}, roundTrip{}, hostStep{}, freeBlock{}, blockLoad{},
	layerOverhead{},
}

// Probes lists every kind of measurement.
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

// probeOf returns the probe of a name, nil where there is none.
func probeOf(name string) *Probe { return probesByName()[name] }

// Shapes that attention is measured on: one with as many KV heads as query
// heads and one with grouped queries.
var shapes = []string{"llama2-7b", "llama3-8b"}

// manyQueries is a shape with eight query heads a KV head, the most of any built-in model:
// some points of decode and selection.
const manyQueries = "yi-9b-200k"

// shapeModel returns the model that stands for a shape.
func shapeModel(name string) (*hw.Model, error) {
	m, err := hw.LoadModel(name)
	if err != nil {
		return nil, err
	}
	return &m, nil
}

// mayBeZero are the axes that may be 0.
var mayBeZero = []string{"prefix_tokens", "columns", "misses"}

// fits reports whether the point has the probe's axes, each at least 1 but those that may be
// 0, and a shape where it needs one.
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
