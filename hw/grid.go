package hw

import (
	"fmt"
	"maps"
	"slices"

	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/internal/tomlfile"
)

// Grid is the measured time of one kernel over its sizes. It is used if neither launch + bytes/rate
// nor waves explain the times, because a library selects among many kernels. Times are interpolated
// linearly in every size, which is exact if the time is a fixed part and a part per unit of work.
// Prompts are interpolated otherwise (promptGrid).
type Grid struct {
	Kernel string `toml:"kernel"` // one of those below
	// Type is the type of the weights (bf16, fp8, fp8_block, nvfp4, int8) or of the KV (bf16, fp8).
	Type string `toml:"type"`
	// Program is the server whose kernel it is, as of Engine.Program; empty: all servers that have no
	// grid of their own.
	Program string `toml:"program,omitempty"`

	Axes   []Axis    `toml:"axes"`
	Times  []float64 `toml:"us"` // microseconds; the last axis changes first
	From   string    `toml:"from" values:"published measured derived imported"`
	Source string    `toml:"source" want:"a source"`
}

// Axis is one size of a kernel and its measured values in ascending order.
type Axis struct {
	Size string    `toml:"size"`
	At   []float64 `toml:"at" rising:"."`
}

// Sizes are the sizes of one time of a grid, in the order of its axes; unused ones are 0.
type Sizes [4]float64

// Kernels of grids and their sizes.
const (
	// GridGEMM is Y = X W: tokens are the rows of X, columns and rows belong to W.
	GridGEMM = "gemm"
	// GridRagged is a GEMM with a token count that is not a multiple of 8, for a kernel that is
	// slower then.
	GridRagged = "gemm_ragged"
	// GridDecode is decode attention: lists are the KV heads of all requests, tokens the KV length of
	// each list, queries the query heads per list.
	GridDecode = "decode_attention"
	// GridPrefill is attention of prompts without a prefix: tokens per prompt, prompts, KV heads per
	// GPU and query heads per KV head.
	GridPrefill = "prefill_attention"
	// GridLatent is decode attention over latents, including the layer's small kernels: requests,
	// tokens per request and query heads per GPU.
	GridLatent = "latent_decode"
	// GridLatentPrefill is attention of prompts over decompressed latents, including the layer's
	// small kernels: tokens per prompt, prompts and query heads per GPU.
	GridLatentPrefill = "latent_prefill"
	// GridSelected is decode attention over latents that an indexer selects, with the indexer and the
	// layer's small kernels: requests, tokens per request, heads of the indexer and query heads per
	// GPU.
	GridSelected = "selected_decode"
	// GridSelectedPrefill is the time per token of prompts among many, of attention and indexer:
	// tokens per prompt, heads of the indexer and query heads per GPU.
	GridSelectedPrefill = "selected_prefill"
	// GridExpert is one routed expert: its tokens, and the weights of its part on a GPU.
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

	GridSelected:        {"requests", "tokens", "index_heads", "heads"},
	GridSelectedPrefill: {"tokens", "index_heads", "heads"},

	GridExpert:    {"tokens", "weights"},
	GridAllReduce: {"gpus", "bytes"},
}

// GridOf returns the grid of a kernel and type that no program has for itself, or nil.
func (k *KernelCosts) GridOf(kernel, kind string) *Grid {
	for i := range k.Grids {
		if g := &k.Grids[i]; g.Kernel == kernel && g.Type == kind && g.Program == "" {
			return g
		}
	}
	return nil
}

// servedBy leaves the grids of a program, and the others where it has none of its own.
func (k *KernelCosts) servedBy(program string) {
	own := map[[2]string]bool{}
	for _, g := range k.Grids {
		if g.Program != "" && g.Program == program {
			own[[2]string{g.Kernel, g.Type}] = true
		}
	}
	var left []Grid
	for _, g := range k.Grids {
		if g.Program == program && own[[2]string{g.Kernel, g.Type}] {
			g.Program = ""
			left = append(left, g)
		} else if g.Program == "" && !own[[2]string{g.Kernel, g.Type}] {
			left = append(left, g)
		}
	}
	k.Grids = left
}

// Each calls f with the sizes of each time in order.
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

// points returns the number of times.
func (g *Grid) points() int {
	n := 1
	for _, a := range g.Axes {
		n *= len(a.At)
	}
	return n
}

// WeightBytes returns the bytes per weight of a Grid's type.
func WeightBytes(kind string) float64 {
	switch kind {
	case "mxfp4":
		return llm.MXFP4Bytes
	case "fp8", "fp8_block", "int8":
		return 1
	case "nvfp4":
		return 0.5 + 1./16 // a scale of 8 bits per 16 weights
	}
	return 2
}

// PeakOf returns the arithmetic peak for weights of a Grid's type, FLOP/s. A card without FP4
// computes in FP8, one without FP8 in FP16. MXFP4 is widened to 16 bits, or to 8 on a card with
// FP4.
func (g *GPU) PeakOf(kind string) float64 {
	switch {
	case kind == "nvfp4" && g.PeakFP4.Set():
		return g.PeakFP4.SI()
	case kind == "mxfp4" && g.PeakFP4.Set():
		return g.PeakFP8.SI()
	case kind != "nvfp4" && WeightBytes(kind) != 1 || !g.PeakFP8.Set():
		return g.PeakFP16.SI()
	}
	return g.PeakFP8.SI()
}

func (k *KernelCosts) checkGrids() error {
	for i := range k.Grids {
		if err := k.Grids[i].check(fmt.Sprintf("grids[%d]", i)); err != nil {
			return err
		}
	}
	return nil
}

func (g *Grid) check(path string) error {
	sizes := gridSizes[g.Kernel]
	switch {
	case sizes == nil:
		return tomlfile.Wrong(path+".kernel", "want one of %v, got %q",
			slices.Sorted(maps.Keys(gridSizes)), g.Kernel)
	case len(g.Axes) != len(sizes):
		return tomlfile.Wrong(path+".axes", "want %d axes, %v, got %d", len(sizes), sizes, len(g.Axes))
	}
	for i, a := range g.Axes {
		at := fmt.Sprintf("%s.axes[%d]", path, i)
		if a.Size != sizes[i] {
			return tomlfile.Wrong(at+".size", "want %q, got %q", sizes[i], a.Size)
		}
		if v := a.At[len(a.At)-1]; v > 1e12 {
			return tomlfile.Wrong(at+".at", "want numbers up to 1e12, got %v", v)
		}
	}
	if points := g.points(); len(g.Times) != points {
		return tomlfile.Wrong(path+".us", "want %d times, one for each point of the axes, got %d", points,
			len(g.Times))
	}
	for _, t := range g.Times {
		if !(t >= leastGridTime && t <= 1e10) {
			return tomlfile.Wrong(path+".us", "want microseconds from 0.001 to 1e10, got %v", t)
		}
	}
	return nil
}

// leastGridTime is the shortest allowed time of a grid, us.
const leastGridTime = 1e-3

// Strides returns, for each axis, the distance in Times between successive values of the axis.
func (g *Grid) Strides() (strides [len(Sizes{})]int) {
	step := 1
	for i := len(g.Axes) - 1; i >= 0; i-- {
		strides[i] = step
		step *= len(g.Axes[i].At)
	}
	return strides
}

// OfPrompts reports whether the first two sizes are tokens per prompt and prompts.
func (g *Grid) OfPrompts() bool { return g.Kernel == GridPrefill || g.Kernel == GridLatentPrefill }
