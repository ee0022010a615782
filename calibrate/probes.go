package calibrate

import (
	"slices"

	"github.com/sparseserve/sparseserve/hw"
)

// Clocks in words, for Probe.Means.
const (
	wall    = "host time from the call until the GPU is idle"
	gpuTime = "GPU time between two events"
	calls   = "launches of an empty kernel and copies of 16 KiB to the GPU, in turn; host time of the calls alone"
)

// Names of the probes.
const (
	probeSync  = "launch.sync"
	probeRope  = "layer.rope"
	probeClose = "layer.close"

	probeH2D          = "link.h2d"
	probeD2H          = "link.d2h"
	probeDuplexCopy   = "link.duplex_copy"
	probeDuplexKernel = "link.duplex_kernel"
	probeLoadMemcpy   = "load.memcpy"
	probeLoadFlash    = "load.flash"
	probeSaveMemcpy   = "save.memcpy"
	probeSaveGPU      = "save.gpu"
	probeSaveFlash    = "save.flash"
	probeLinears      = "linears"
	probeClock        = "clock.linears"
	probePrompt       = "clock.prompt"
	probeRested       = "clock.rested"
	probeRestedDense  = "clock.rested_dense"
	probeChunk        = "clock.chunk"
	probePointwise    = "pointwise"
	probePrefill      = "prefill_attention"
	probeDense        = "dense_decode"
	probeSparse       = "sparse_decode"
	probePSA          = "psa_decode"
	probePSALaunches  = "psa_launches"
	probePSAUneven    = "psa_uneven"
	probeSelect       = "scoring"
	probeCallsNone    = "calls.nothing"
	probeCallsSave    = "calls.save_memcpy"
	probeLayersNone   = "layers.nothing"
	probeLayersMemcpy = "layers.save_memcpy"
	probeLayersGPU    = "layers.save_gpu"

	probePrefillMemcpy = "prefill.save_memcpy"

	probeLive = "live.step"

	probeLiveOffload = "live.step_offload"
	probeLiveLoads   = "live.step_loads"
	probeLiveFreed   = "live.step_freed"

	probeLiveUnsplit   = "live.unsplit"
	probeLiveHeld      = "live.unsplit_held"
	probeLiveHeldPSA   = "live.unsplit_held_psa"
	probeLiveDense     = "live.unsplit_dense"
	probeLiveLookup    = "live.unsplit_lookup"
	probeLiveLookupPSA = "live.unsplit_lookup_psa"
)

// probes is every kind of measurement, in the order of measuring.
var probes = []Probe{
	{probeSync, "an empty kernel; " + wall, "ss_empty", nil},
	{probeRope, "the two with rope of a prompt's tokens, K and V to their blocks, between them; " + gpuTime, "ss_rope", []string{"tokens"}},
	{probeClose, "the same, and behind it the digests of these blocks and their copy to a save buffer; " + gpuTime, "ss_gpu_scatter", []string{"tokens"}},
	{probeH2D, "one large copy from pinned memory; " + wall, "ss_memcpy", []string{"bytes"}},
	{probeD2H, "one large copy to pinned memory; " + wall, "ss_memcpy", []string{"bytes"}},
	{probeDuplexCopy, "copies both ways at once: bytes of both directions over the sum of their rates", "ss_memcpy", []string{"bytes"}},
	{probeDuplexKernel, "FlashH2D and the GPU scatter kernel at once: bytes of both directions over the sum of their rates", "ss_flash_h2d", []string{"bytes"}},
	{probeLoadMemcpy, "one memcpy a block, blocks anywhere in a pinned pool; " + wall, "ss_memcpy_blocks", []string{"block_bytes", "blocks", "pool_mib"}},
	{probeLoadFlash, "FlashH2D, one gather kernel; " + wall, "ss_flash_h2d", []string{"block_bytes", "blocks", "pool_mib"}},
	{probeSaveMemcpy, "one memcpy a block, to blocks anywhere in a pinned pool; " + wall, "ss_memcpy_blocks", []string{"block_bytes", "blocks", "pool_mib"}},
	{probeSaveGPU, "one scatter kernel, to blocks anywhere in a pinned pool; " + wall, "ss_gpu_scatter", []string{"block_bytes", "blocks", "pool_mib"}},
	{probeSaveFlash, "FlashD2H, one copy and the CPU's scatter to blocks anywhere in a pinned pool, overlapped; until every block is written", "ss_flash_d2h", []string{"block_bytes", "blocks", "pool_mib", "threads"}},
	{probeLinears, "the four linears of one layer; " + gpuTime, "ss_linear", []string{"tokens"}},
	{probeClock, "the same, some times over, so long after they began to run without pause; before that the card copied within HBM; GPU time of one", "ss_linear", []string{"tokens", "after_ms"}},
	{probePrompt, "the linears and the attention of the chunks of two prompts, one chunk behind another, behind so many tokens of the first prompt or the second; before all of them the card decoded densely; GPU time of one layer", "ss_linear, ss_prefill", []string{"tokens", "prefix_tokens", "prompt"}},
	{probeRested, "linears after they ran without pause and the card then copied within HBM for so long; mean GPU time of the next layers", "ss_linear", []string{"tokens", "rest_ms", "layers"}},
	{probeRestedDense, "the same, the card having decoded densely for so long", "ss_linear, ss_decode", []string{"tokens", "rest_ms", "layers"}},
	{probeChunk, "the linears and the attention of a prompt's chunk, layer after layer without pause; " + gpuTime + " of one layer", "ss_linear, ss_prefill", []string{"tokens", "prefix_tokens"}},
	{probePointwise, "what one layer has beside linears and attention: two norms with their residual sums, rope with the write of K and V to their blocks, silu(gate) up; " + gpuTime,
		"ss_rmsnorm, ss_rope, ss_silu_mul", []string{"tokens"}},
	{probePrefill, "causal attention of one chunk, K and V of a first chunk contiguous, of a later one and of what is before it in KV blocks anywhere; " + gpuTime, "ss_prefill", []string{"query_tokens", "prefix_tokens"}},
	{probeDense, "paged dense decode attention of one layer, L2 flushed; " + gpuTime, "ss_decode", []string{"batch", "context_tokens"}},
	{probeSparse, "decode attention to selected blocks, L2 flushed; " + gpuTime, "ss_decode", []string{"batch", "budget_tokens"}},
	{probePSA, "PSA decode that attends to all blocks of the budget, in rounds of a microbatch of blocks, L2 flushed; " + gpuTime, "ss_psa", []string{"batch", "budget_tokens", "micro_blocks"}},
	{probePSALaunches, "the same with a launch for each microbatch; " + gpuTime, "ss_psa", []string{"batch", "budget_tokens", "micro_blocks"}},
	{probePSAUneven, "PSA decode of lists that end in different rounds, most of them early: the one of rank x lasts x^3 of the longest; L2 flushed; " + gpuTime, "ss_psa", []string{"batch", "longest_tokens", "micro_blocks"}},
	{probeSelect, "scores and top-k, L2 flushed; " + gpuTime, "ss_select", []string{"batch", "context_tokens", "budget_tokens"}},
	{probeCallsNone, calls, "ss_empty, ss_memcpy", []string{"launches", "copies"}},
	{probeCallsSave, calls + ", while a second thread saves with a memcpy a block without pause", "ss_empty, ss_memcpy", []string{"launches", "copies"}},
	{probeLayersNone, "prefill of a chunk in some layers, nothing saved; until all is done", "ss_linear, ss_prefill", []string{"chunk_tokens", "prefix_tokens", "layers"}},
	{probeLayersMemcpy, "the same, each layer's KV saved by one memcpy a block", "ss_memcpy_blocks", []string{"chunk_tokens", "prefix_tokens", "layers"}},
	{probeLayersGPU, "the same, each layer's KV saved by the GPU scatter kernel", "ss_gpu_scatter", []string{"chunk_tokens", "prefix_tokens", "layers"}},
	{probePrefillMemcpy, "the same, each layer's KV saved by one memcpy a block to pages anywhere in a pinned pool, in the order and with as many calls a layer as the serving loop's, launched no further ahead of the saves than its save buffer allows", "ss_memcpy_blocks", []string{"chunk_tokens", "prefix_tokens", "layers", "pool_mib"}},
	{probeLive, "a decode step of the live loop, dense, KV in HBM: what of it GPU events do not see", "all of a layer", []string{"layers", "requests"}},
	{probeLiveFreed, "steps of that server behind a request's end, whose blocks the cache takes back: by how much they are longer", "all of a layer", []string{"layers", "requests"}},
	{probeLiveOffload, "the same with selected blocks and offloading", "all of a layer", []string{"layers", "requests"}},
	{probeLiveLoads, "the same in less HBM, so that each layer loads blocks, this many on average", "all of a layer", []string{"layers", "requests", "loads"}},
	{probeLiveUnsplit, "steps of a server that requests leave one after another, with selected blocks and offloading, looked up by the CPU, in which nothing changes: all of the step", "all of a layer", []string{"layers", "requests"}},
	{probeLiveHeld, "the same as " + probeLiveUnsplit + " with KV in HBM alone, so that no layer asks the CPU", "all of a layer", []string{"layers", "requests"}},
	{probeLiveHeldPSA, "the same with PSA", "all of a layer", []string{"layers", "requests", "rounds"}},
	{probeLiveDense, "the same with attention to the whole context", "all of a layer", []string{"layers", "requests"}},
	{probeLiveLookup, "decode steps of such a server whose lists the GPU looks up, none of their blocks missing: all of the step", "all of a layer", []string{"layers", "requests"}},
	{probeLiveLookupPSA, "the same with PSA", "all of a layer", []string{"layers", "requests", "rounds"}},
}

// leavingProbes are steps of servers that requests leave one after another.
var leavingProbes = []string{
	probeLiveFreed, probeLiveUnsplit, probeLiveHeld, probeLiveHeldPSA,
	probeLiveDense, probeLiveLookup, probeLiveLookupPSA,
}

// turnProbes are those of them whose layers wait for the CPU.
var turnProbes = []string{probeLiveFreed, probeLiveUnsplit}

// clockProbes are linears, with attention or without, timed for what was done before.
var clockProbes = []string{probeClock, probePrompt, probeRested, probeRestedDense}

// trainProbes are those of them that come one behind another.
var trainProbes = []string{probeClock, probePrompt}

// Probes lists every kind of measurement, in the order of measuring.
func Probes() []Probe { return slices.Clone(probes) }

// shaped are the probes whose points name a model shape.
var shaped = slices.Concat(liveProbes, leavingProbes, []string{
	probeRope, probeClose,
	probeLinears, probeClock, probePrompt, probeRested, probeRestedDense, probeChunk, probePointwise, probePrefill,
	probeDense, probeSparse, probePSA, probePSALaunches, probePSAUneven, probeSelect,
	probeLayersNone, probeLayersMemcpy, probeLayersGPU, probePrefillMemcpy,
})

func probeOf(name string) *Probe {
	for i := range probes {
		if probes[i].Name == name {
			return &probes[i]
		}
	}
	return nil
}

// mayBeNone are the axes that may be 0.
var mayBeNone = []string{"prefix_tokens", "beside"}

// fits says whether the point has the probe's axes, each at least 1 but those that
// may be 0, and a shape where it needs one.
func (p *Probe) fits(at Point) bool {
	if len(at.Axes) != len(p.Axes) || (at.Shape != "") != slices.Contains(shaped, p.Name) {
		return false
	}
	for i, a := range at.Axes {
		if a.Name != p.Axes[i] || a.Value < 0 || a.Value > 1<<50 || a.Value == 0 && !slices.Contains(mayBeNone, a.Name) {
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

// Shapes that attention is measured on: one with as many KV heads as query
// heads and one with grouped queries.
var shapes = []string{"llama2-7b", "llama3-8b"}

// fewHeads is a shape with eight query heads a KV head, the most of any
// built-in model: some points of decode and selection.
const fewHeads = "yi-9b-200k"

// linearShapes are those whose linears are measured: from the smallest to the largest of
// the built-in models of 4 to 9 billion parameters. Others are scaled from the nearest.
func linearShapes() []string {
	return append(slices.Clone(shapes), "phi3-mini-128k", "qwen2-7b", fewHeads)
}

// shapeModel returns the model that stands for a shape.
func shapeModel(name string) (*hw.Model, error) {
	m, err := hw.LoadModel(name)
	if err != nil {
		return nil, err
	}
	return &m, nil
}
