package calibrate

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sparseserve/sparseserve/cuda"
)

// Probe is one kind of measurement.
type Probe struct {
	Name string
	Axes []string // names of the sizes that make a point
	axes string   // the same, separated by spaces

	// setup prepares a point and a check of its result. serve does so for a probe that runs more than
	// timed calls.
	setup   func(*gpuRun, Point) *work
	serve   func(*gpuBench, Point) (Timed, error)
	clock   cuda.Clock       // of the samples
	flush   bool             // the L2 before each sample
	settles [2]time.Duration // warm-up before the samples (gpu_bench.go)

	shaped bool // its points name a model shape
	needed bool // no profile can be made without it

	// samples of a point, however long they last; 0: as many as the rule wants
	fixed int
	// byMean takes the mean of a point's samples and not the median: a card changes its clock at
	// unpredictable times, and a run averages over all clocks.
	byMean bool
}

// Axis is one size of a point, the unit in its name.
type Axis struct {
	Name  string
	Value int64
}

// Point is one size at which a probe is measured. Shape is the model shape if the cost depends on
// it.
type Point struct {
	Probe string
	Shape string
	Axes  []Axis
}

// At returns a size. It panics if the point lacks the axis, which is a bug of the plan.
func (p Point) At(axis string) int64 {
	for _, a := range p.Axes {
		if a.Name == axis {
			return a.Value
		}
	}
	panic("calibrate: " + p.Key() + " has no axis " + axis)
}

// Sizes returns the axes in the format of the CSV: "blocks=64 block_bytes=16384".
func (p Point) Sizes() string {
	parts := make([]string, len(p.Axes))
	for i, a := range p.Axes {
		parts[i] = a.Name + "=" + strconv.FormatInt(a.Value, 10)
	}
	return strings.Join(parts, " ")
}

// Key names the point.
func (p Point) Key() string {
	return strings.Join(strings.Fields(p.Probe+" "+p.Shape+" "+p.Sizes()), " ")
}

// parseSizes reads what Sizes wrote.
func parseSizes(text string) ([]Axis, error) {
	var axes []Axis
	for _, part := range strings.Fields(text) {
		name, value, ok := strings.Cut(part, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("want axis=value, got %q", part)
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 || strconv.FormatInt(n, 10) != value {
			return nil, fmt.Errorf("%s: want a whole number, got %q", name, value)
		}
		for _, a := range axes {
			if a.Name == name {
				return nil, fmt.Errorf("axis %s appears twice", name)
			}
		}
		axes = append(axes, Axis{name, n})
	}
	return axes, nil
}
