package hw

import (
	"fmt"
	"maps"
	"slices"
	"sort"
)

// Grid is the measured time of one kernel over its sizes, from a table of such times. It is used
// where neither launch + bytes/rate nor waves explain the times, because a library chooses among
// many kernels. Between points the time is straight in every size,
// which is exact where a fixed part and a part per unit of work add up; prompts are read otherwise
// (promptGrid).
type Grid struct {
	Kernel string `toml:"kernel"` // one of those below
	// Type is that of the weights (bf16, fp8, fp8_block, nvfp4, int8), or of the KV (bf16, fp8).
	Type   string    `toml:"type"`
	Axes   []Axis    `toml:"axes"`
	Times  []float64 `toml:"us"` // microseconds; the last axis changes first
	From   string    `toml:"from"`
	Source string    `toml:"source"`
}

// Axis is one size of a kernel and the values, rising, at which it was measured.
type Axis struct {
	Size string    `toml:"size"`
	At   []float64 `toml:"at"`
}

// Sizes are those of one time of a grid, in the order of its axes; 0 where it has fewer.
type Sizes [4]float64

// Kernels of grids, with their sizes.
const (
	// GridGEMM is Y = X W: tokens are rows of X, columns and rows are those of W.
	GridGEMM = "gemm"
	// GridRagged is a GEMM of tokens that are no multiple of 8, where the kernel is slower with them.
	GridRagged = "gemm_ragged"
	// GridDecode is decode attention: lists are KV heads of all requests, tokens the KV of each, and
	// queries the query heads of a list.
	GridDecode = "decode_attention"
	// GridPrefill is attention of prompts without a prefix: tokens of each prompt, prompts, KV heads
	// of a GPU and query heads of each.
	GridPrefill = "prefill_attention"
	// GridLatent is decode attention over latents: requests, tokens of each and query heads of a GPU,
	// with the small kernels of the layer.
	GridLatent = "latent_decode"
	// GridLatentPrefill is attention of prompts over decompressed latents, with the small kernels of
	// the layer: tokens of each prompt, prompts and query heads of a GPU.
	GridLatentPrefill = "latent_prefill"
	// GridExpert is one of the routed experts that a batch is sent to: its tokens, and the weights of
	// its part on a GPU.
	GridExpert = "expert"
	// GridAllReduce is an all-reduce of 16-bit values between GPUs of a host, in a CUDA graph.
	GridAllReduce = "all_reduce"
)

var gridSizes = map[string][]string{
	GridGEMM:   {"tokens", "columns", "rows"},
	GridRagged: {"tokens", "columns", "rows"},
	GridDecode: {"lists", "tokens", "queries"},
	GridLatent: {"requests", "tokens", "heads"},

	GridPrefill:       {"tokens", "prompts", "kv_heads", "queries"},
	GridLatentPrefill: {"tokens", "prompts", "heads"},

	GridExpert:    {"tokens", "weights"},
	GridAllReduce: {"gpus", "bytes"},
}

// grid returns that of a kernel and type, nil where there is none.
func (k *KernelCosts) grid(kernel, kind string) *Grid {
	for i := range k.Grids {
		if g := &k.Grids[i]; g.Kernel == kernel && g.Type == kind {
			return g
		}
	}
	return nil
}

// Each calls f with the sizes of each time, in their order.
func (g *Grid) Each(f func(sizes Sizes)) {
	strides := g.Strides()
	for i := range g.points() {
		var sizes Sizes
		for j, a := range g.Axes {
			sizes[j] = a.At[i/strides[j]%len(a.At)]
		}
		f(sizes)
	}
}

// points is the number of times.
func (g *Grid) points() int {
	n := 1
	for _, a := range g.Axes {
		n *= len(a.At)
	}
	return n
}

// WeightBytes returns the bytes of a weight of a type of a Grid.
func WeightBytes(kind string) float64 {
	switch kind {
	case "mxfp4":
		return mxfp4Bytes
	case "fp8", "fp8_block", "int8":
		return 1
	case "nvfp4":
		return 0.5 + 1./16 // a scale of 8 bits for 16 weights
	}
	return 2
}

// PeakOf returns the peak of arithmetic with weights of a type of a Grid, FLOP/s.
func (c *Card) PeakOf(kind string) float64 {
	p := Profile{GPU: c.GPU}
	switch kind {
	case "fp8", "fp8_block", "int8":
		return p.peakFP8()
	case "nvfp4":
		return p.peakFP4()
	}
	return c.GPU.PeakFP16.SI()
}

func (k *KernelCosts) checkGrids() error {
	seen := map[string]bool{}
	for i := range k.Grids {
		g := &k.Grids[i]
		if name := g.Kernel + " of " + g.Type; seen[name] {
			return wrong(fmt.Sprintf("grids[%d].type", i), "there is a grid of %s already", name)
		} else {
			seen[name] = true
		}
		if err := g.check(fmt.Sprintf("grids[%d]", i)); err != nil {
			return err
		}
	}
	return nil
}

func (g *Grid) check(path string) error {
	sizes := gridSizes[g.Kernel]
	switch {
	case sizes == nil:
		return wrong(path+".kernel", "want one of %v, got %q",
			slices.Sorted(maps.Keys(gridSizes)), g.Kernel)
	case len(g.Axes) != len(sizes):
		return wrong(path+".axes", "want %d of them, %v, got %d", len(sizes), sizes, len(g.Axes))
	case g.Source == "":
		return wrong(path+".source", "want a source")
	case !slices.Contains([]string{Published, Measured, Derived, Imported}, g.From):
		return wrong(path+".from", "want published, measured, derived or imported, got %q", g.From)
	}
	for i, a := range g.Axes {
		at := fmt.Sprintf("%s.axes[%d]", path, i)
		if a.Size != sizes[i] {
			return wrong(at+".size", "want %q, got %q", sizes[i], a.Size)
		}
		for j, v := range a.At {
			if !(v > 0) || v > 1e12 || j > 0 && v <= a.At[j-1] {
				return wrong(at+".at", "want numbers above 0 that rise, got %v", v)
			}
		}
	}
	points := g.points()
	if points < 1 || len(g.Times) != points {
		return wrong(path+".us", "want %d times, one for each point of the axes, got %d", points,
			len(g.Times))
	}
	for _, t := range g.Times {
		if !(t >= leastGridTime && t <= 1e10) {
			return wrong(path+".us", "want microseconds from 0.001 to 1e10, got %v", t)
		}
	}
	return nil
}

// leastGridTime is the shortest time of a grid, us.
const leastGridTime = 1e-3

// lattice reads a grid.
type lattice struct {
	axes   []Axis
	times  []float64 // microseconds
	stride [len(Sizes{})]int
}

func newLattice(g *Grid) *lattice {
	return &lattice{axes: g.Axes, times: g.Times, stride: g.Strides()}
}

// Strides returns, for each axis, from a time to that of the axis's next value.
func (g *Grid) Strides() (strides [len(Sizes{})]int) {
	step := 1
	for i := len(g.Axes) - 1; i >= 0; i-- {
		strides[i] = step
		step *= len(g.Axes[i].At)
	}
	return strides
}

// seconds returns the time at some sizes. Below an axis its first point holds, as launches do;
// beyond it the time grows in proportion, and outside is true.
func (l *lattice) seconds(sizes Sizes) (t float64, outside bool) {
	var low [len(sizes)]int
	var part Sizes
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

// OfPrompts reports whether the first two sizes are the tokens of a prompt and how many prompts.
func (g *Grid) OfPrompts() bool { return g.Kernel == GridPrefill || g.Kernel == GridLatentPrefill }

// Seconds returns the time of the grid's kernel at some sizes.
func (g *Grid) Seconds(sizes Sizes) float64 {
	if g.OfPrompts() {
		return newPromptGrid(g, sizes[2:]...).seconds(sizes[0], sizes[1])
	}
	t, _ := newLattice(g).seconds(sizes)
	return t
}
