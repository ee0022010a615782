package calibrate

import (
	"slices"
	"strings"
	"sync"

	"github.com/sparseserve/sparseserve/cuda"
)

// Names of probes, as in files of samples.
const (
	probeH2D             = "link.h2d"
	probeD2H             = "link.d2h"
	probeDuplex          = "link.duplex"
	probeLoadMemcpy      = "load.memcpy"
	probeLoadFlash       = "load.flash"
	probeSaveMemcpy      = "save.memcpy"
	probeSaveGPU         = "save.gpu"
	probeSaveFlash       = "save.flash"
	probeSwap            = "load.swap"
	probeOverlap         = "overlap.prefill"
	probeLinears         = "linears"
	probePointwise       = "pointwise"
	probeInPlace         = "pointwise.in_place"
	probePrefill         = "prefill_attention"
	probePrefillBlocks   = "prefill_attention.blocks"
	probeSparseAttention = "sparse_prefill.attention"
	probeSparseIndex     = "sparse_prefill.index"
	probeDense           = "dense_decode"
	probeSparse          = "sparse_decode"
	probeShared          = "dense_decode.shared"
	probeSelect          = "scoring"
	probeSync            = "launch.sync"
	probeClock           = "clock.linears"
	probeAfterDecodes    = "clock.after_decodes"
	probeChunk           = "clock.chunk"
)

// Axes that several probes have.
const (
	blockAxes = "block_bytes blocks pool_mib"
	chunkAxes = "query_tokens prefix_tokens"
)

// Probes returns all kinds of measurement. Kernels of a layer are timed on the GPU between two
// events, for a model shape; decodes after a flush of the L2. Copies and transfers are timed on the
// host, from the call until the GPU is idle.
func Probes() []Probe {
	return []Probe{
		// One large copy between the GPU and pinned memory, and copies or kernels both ways at once:
		// the bytes of both directions over the sum of their rates.
		{Name: probeH2D, axes: "bytes", setup: (*gpuRun).setupCopy,
			needed: true, clock: cuda.WallClock, settles: settles},
		{Name: probeD2H, axes: "bytes", setup: (*gpuRun).setupCopy,
			needed: true, clock: cuda.WallClock, settles: settles},
		{Name: probeDuplex, axes: "copied_bytes kernel_bytes", setup: (*gpuRun).setupDuplex,
			needed: true, clock: cuda.WallClock},
		// Blocks anywhere in a pinned pool: one memcpy each, or one kernel.
		{Name: probeLoadMemcpy, axes: blockAxes, setup: (*gpuRun).setupLoad,
			needed: true, clock: cuda.WallClock},
		{Name: probeLoadFlash, axes: blockAxes, setup: (*gpuRun).setupLoad,
			needed: true, clock: cuda.WallClock},
		{Name: probeSaveMemcpy, axes: blockAxes, setup: (*gpuRun).setupSave,
			needed: true, clock: cuda.WallClock},
		{Name: probeSaveGPU, axes: blockAxes, setup: (*gpuRun).setupSave,
			needed: true, clock: cuda.WallClock},
		// FlashD2H until every block is written: one copy, and the CPU's scatter beside it.
		{Name: probeSaveFlash, axes: blockAxes + " threads", setup: (*gpuRun).setupSave,
			needed: true, clock: cuda.WallClock},
		// Hot buffers of 2,048 selected tokens a request: lookup, eviction and gather of the misses.
		{Name: probeSwap, axes: "row_bytes requests slots misses", setup: (*gpuRun).setupSwap},
		// Layers that prefill a chunk without pause while FlashH2D loads, or the GPU scatter kernel
		// saves, blocks of 16 KiB again and again; on the host's clock.
		{Name: probeOverlap, axes: "chunk_tokens prefix_tokens loaded_blocks saved_blocks",
			setup: (*gpuRun).setupOverlapped, shaped: true, settles: rests},
		// The four linears of a layer.
		{Name: probeLinears, axes: "tokens", setup: (*gpuRun).setupLinears, shaped: true,
			needed: true, settles: settles},
		// A layer without linears and attention: two norms with their residual sums, rope with the write
		// of K and V to their blocks, silu(gate) up; and what these add between their linears.
		{Name: probePointwise, axes: "tokens", setup: (*gpuRun).setupPointwise, shaped: true,
			needed: true},
		{Name: probeInPlace, axes: "tokens", serve: (*gpuBench).prepareRounds, shaped: true,
			fixed: clockSamples},
		// Causal attention of a chunk. K and V of a first chunk are contiguous, of a later one and
		// before it in KV blocks anywhere, of 32 tokens or of the last axis.
		{Name: probePrefill, axes: chunkAxes, setup: (*gpuRun).setupPrefill, shaped: true,
			needed: true, settles: settles},
		{Name: probePrefillBlocks, axes: chunkAxes + " block_tokens", setup: (*gpuRun).setupPrefill,
			shaped: true, settles: settles},
		// Attention of a chunk to its first and newest keys, or to lists of blocks, half of which both
		// rows of a tile share, and to gathered columns.
		{Name: probeSparseAttention, axes: chunkAxes + " sink_tokens window_tokens blocks columns",
			setup: (*gpuRun).setupSparseAttention, shaped: true, settles: settles},
		// Vertical and slash lines of a chunk, estimated by its last queries, chosen, and merged to
		// lists; or blocks, chosen by pooled queries and keys.
		{Name: probeSparseIndex, axes: chunkAxes + " vertical_lines slash_lines blocks",
			setup: (*gpuRun).setupSparseIndex, shaped: true, settles: settles},
		// Decode attention to whole contexts, to selected blocks, and to contexts that begin alike.
		{Name: probeDense, axes: "batch context_tokens", setup: (*gpuRun).setupDecode, shaped: true,
			needed: true, flush: true},
		{Name: probeSparse, axes: "batch budget_tokens", setup: (*gpuRun).setupDecode, shaped: true,
			needed: true, flush: true},
		{Name: probeShared, axes: "batch context_tokens shared_tokens", setup: (*gpuRun).setupShared,
			shaped: true, flush: true},
		// Scores and top-k.
		{Name: probeSelect, axes: "batch context_tokens budget_tokens", setup: (*gpuRun).setupSelect,
			shaped: true, needed: true, flush: true},
		// An empty kernel, on the host's clock.
		{Name: probeSync, setup: (*gpuRun).setupSync, clock: cuda.WallClock},
		// Three series without pauses: linears that begin after_ms after a copy within HBM, linears
		// that follow the linears of decodes, and layers of a chunk with linears and attention.
		{Name: probeClock, axes: "tokens after_ms", serve: (*gpuBench).prepareRounds, shaped: true,
			fixed: clockSamples, byMean: true},
		{Name: probeAfterDecodes, axes: "tokens", serve: (*gpuBench).prepareRounds, shaped: true,
			fixed: clockSamples},
		{Name: probeChunk, axes: "tokens prefix_tokens", setup: (*gpuRun).setupChunk, shaped: true,
			byMean: true, settles: settles},
	}
}

var probesByName = sync.OnceValue(func() map[string]*Probe {
	all := map[string]*Probe{}
	for _, p := range Probes() {
		p.Axes = strings.Fields(p.axes)
		all[p.Name] = &p
	}
	return all
})

// probeOf returns the probe of a name, or nil.
func probeOf(name string) *Probe { return probesByName()[name] }

// point makes a point of a probe, sizes in the order of its axes.
func point(probe, shape string, sizes ...int64) Point {
	p := Point{Probe: probe, Shape: shape}
	for i, axis := range probeOf(probe).Axes {
		p.Axes = append(p.Axes, Axis{axis, sizes[i]})
	}
	return p
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
