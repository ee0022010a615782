package calibrate

import (
	"fmt"
	"slices"

	"sparseserve/hw"
)

// Clocks in words, for Probe.Means.
const (
	wall    = "host time from the call until the GPU is idle"
	gpuTime = "GPU time between two events"
	calls   = "launches of an empty kernel and copies of 16 KiB to the GPU, in turn; host time of the calls alone"
)

// Names of the probes.
const (
	probeSubmit        = "launch.submit"
	probeSync          = "launch.sync"
	probeDown          = "layer.down"
	probeUp            = "layer.up"
	probePair          = "launch.pair"
	probeBetween       = "layer.between"
	probeKVWrite       = "layer.kv_write"
	probeRope          = "layer.rope"
	probeDigest        = "layer.digest"
	probeRing          = "layer.ring"
	probeLookup        = "layer.lookup"
	probeLookupMissing = "layer.lookup_missing"
	probeTable         = "layer.table"

	probeBehindNone    = "behind.nothing"
	probeBehindLists   = "behind.lists"
	probeBehindWrite   = "behind.kv_write"
	probeBehindTable   = "behind.table"
	probeBehindLookup  = "behind.lookup"
	probeBehindMissing = "behind.lookup_missing"
	probeBehindGather  = "behind.gather"
	probeBehindLoad    = "behind.load"

	probeHBM            = "hbm.copy"
	probeH2D            = "link.h2d"
	probeD2H            = "link.d2h"
	probeDuplexCopy     = "link.duplex_copy"
	probeDuplexKernel   = "link.duplex_kernel"
	probeDuplexGather   = "link.duplex_gather"
	probeLoadMemcpy     = "load.memcpy"
	probeLoadBatched    = "load.batched"
	probeLoadFlash      = "load.flash"
	probeSaveMemcpy     = "save.memcpy"
	probeSaveGPU        = "save.gpu"
	probeSaveFlash      = "save.flash"
	probeLinears        = "linears"
	probeClock          = "clock.linears"
	probePrompt         = "clock.prompt"
	probeDecodes        = "clock.decodes"
	probeRested         = "clock.rested"
	probeRestedIdle     = "clock.rested_idle"
	probeRestedDense    = "clock.rested_dense"
	probeChunk          = "clock.chunk"
	probePointwise      = "pointwise"
	probeHead           = "head"
	probeEmbed          = "embedding"
	probePrefill        = "prefill_attention"
	probeChunked        = "prefill_chunked"
	probeDense          = "dense_decode"
	probeDenseUneven    = "dense_uneven"
	probeSparse         = "sparse_decode"
	probePSA            = "psa_decode"
	probePSALaunches    = "psa_launches"
	probePSAUneven      = "psa_uneven"
	probePSALaunchCalls = "psa_launch_calls"
	probeSelect         = "scoring"
	probeBesideNone     = "beside.nothing"
	probeBesideSave     = "beside.save_gpu"
	probeBesideLoad     = "beside.load_flash"
	probeBesideFlash    = "beside.save_flash"
	probeCallsNone      = "calls.nothing"
	probeCallsSave      = "calls.save_memcpy"
	probeBothLoad       = "both.load_memcpy"
	probeBothSave       = "both.save_memcpy"
	probeBothTurn       = "both.round_trip"
	probeLiveCopies     = "live.step_loads_memcpy"
	probeCallsLoad      = "calls.load_memcpy"
	probeLayersNone     = "layers.nothing"
	probeLayersMemcpy   = "layers.save_memcpy"
	probeLayersGPU      = "layers.save_gpu"
	probeLayersFlash    = "layers.save_flash"

	probePrefillMemcpy = "prefill.save_memcpy"

	probeLive        = "live.step"
	probeLiveOffload = "live.step_offload"
	probeLiveLoads   = "live.step_loads"
	probeLiveCPU     = "live.cpu"

	probeLiveLeaving = "live.step_leaving"
	probeLiveWhole   = "live.step_whole"
	probeLiveFreed   = "live.step_freed"
	probeLivePSA     = "live.step_psa"

	probeLiveUnsplit    = "live.unsplit"
	probeLiveUnsplitPSA = "live.unsplit_psa"
	probeLiveHeld       = "live.unsplit_held"
	probeLiveHeldPSA    = "live.unsplit_held_psa"
	probeLiveCPUPSA     = "live.cpu_psa"
	probeLiveDense      = "live.unsplit_dense"
	probeLiveChunk      = "live.unsplit_chunk"
	probeLivePrompt     = "live.unsplit_prompt"
	probeLiveLookup     = "live.unsplit_lookup"
	probeLiveLookupPSA  = "live.unsplit_lookup_psa"
	probeLiveTight      = "live.unsplit_tight"
	probeLiveTightPSA   = "live.unsplit_tight_psa"
)

// probes is every kind of measurement, in the order of measuring.
var probes = []Probe{
	{probeSubmit, "an empty kernel; host time of the call alone", "ss_empty", nil},
	{probeSync, "an empty kernel; " + wall, "ss_empty", nil},
	{probeDown, "a kernel, then a copy of a layer's selection to the host; " + wall, "ss_memcpy", []string{"bytes"}},
	{probeUp, "a copy of block tables to the GPU, then a kernel; " + wall, "ss_memcpy", []string{"bytes"}},
	{probePair, "two empty kernels; " + gpuTime, "ss_empty", nil},
	{probeBetween, "the same with the kernel that brings a layer's lists up between them; " + gpuTime, "ss_carry", []string{"bytes"}},
	{probeKVWrite, "the two with the kernel that writes K and V of decodes to their blocks between them; " + gpuTime, "ss_kv_write", []string{"tokens"}},
	{probeRope, "the two with rope of a prompt's tokens, K and V to their blocks, between them; " + gpuTime, "ss_rope", []string{"tokens"}},
	{probeDigest, "the same with the digests of these blocks behind it; " + gpuTime, "ss_digest", []string{"tokens"}},
	{probeRing, "the same, and behind the digests the copy of these blocks to a save buffer; " + gpuTime, "ss_gpu_scatter", []string{"tokens"}},
	{probeLookup, "the two with the GPU's lookup of a layer's lists and a gather of nothing between them; " + gpuTime, "ss_lookup", []string{"requests"}},
	{probeLookupMissing, "the same behind the kernel that takes blocks from tables; " + gpuTime, "ss_lookup", []string{"requests", "missing_blocks"}},
	{probeTable, "the two with the kernel that takes blocks from tables between them; " + gpuTime, "ss_table", []string{"missing_blocks"}},
	{probeBehindNone, "the first two linears of so many decodes in layer after layer; " + gpuTime + ", of a layer", "ss_linear", []string{"requests"}},
	{probeBehindLists, "the same, and between the two the kernel that brings the layer's lists up", "ss_carry", []string{"requests"}},
	{probeBehindWrite, "the same, and behind that the kernel that writes K and V of decodes to their blocks", "ss_kv_write", []string{"requests"}},
	{probeBehindTable, "linears and lists, and behind the lists the kernel that takes blocks from tables", "ss_table", []string{"requests", "missing_blocks"}},
	{probeBehindLookup, "linears and lists, and behind the lists the GPU's lookup and a gather of nothing: tables, and what else the kernels read, come from HBM", "ss_lookup", []string{"requests"}},
	{probeBehindMissing, "the same, and before the lookup the kernel that takes blocks from tables", "ss_lookup", []string{"requests", "missing_blocks"}},
	{probeBehindGather, "linears and lists, and behind the lists FlashH2D that finds nothing to load", "ss_flash_h2d", []string{"requests"}},
	{probeBehindLoad, "the same with so many blocks of 16 KiB to load, anywhere in a pinned pool", "ss_flash_h2d", []string{"requests", "blocks"}},
	{probeHBM, "a copy within HBM, read once and written once; " + gpuTime, "ss_memcpy", []string{"bytes"}},
	{probeH2D, "one large copy from pinned memory; " + wall, "ss_memcpy", []string{"bytes"}},
	{probeD2H, "one large copy to pinned memory; " + wall, "ss_memcpy", []string{"bytes"}},
	{probeDuplexCopy, "copies both ways at once: bytes of both directions over the sum of their rates", "ss_memcpy", []string{"bytes"}},
	{probeDuplexKernel, "FlashH2D and the GPU scatter kernel at once: bytes of both directions over the sum of their rates", "ss_flash_h2d", []string{"bytes"}},
	{probeDuplexGather, "FlashH2D and a large copy to pinned memory at once: bytes of both directions over the sum of their rates", "ss_flash_h2d", []string{"bytes"}},
	{probeLoadMemcpy, "one memcpy a block, blocks anywhere in a pinned pool; " + wall, "ss_memcpy_blocks", []string{"block_bytes", "blocks", "pool_mib"}},
	{probeLoadBatched, "one batched memcpy of all blocks; " + wall, "ss_memcpy_batch", []string{"block_bytes", "blocks", "pool_mib"}},
	{probeLoadFlash, "FlashH2D, one gather kernel; " + wall, "ss_flash_h2d", []string{"block_bytes", "blocks", "pool_mib"}},
	{probeSaveMemcpy, "one memcpy a block, to blocks anywhere in a pinned pool; " + wall, "ss_memcpy_blocks", []string{"block_bytes", "blocks", "pool_mib"}},
	{probeSaveGPU, "one scatter kernel, to blocks anywhere in a pinned pool; " + wall, "ss_gpu_scatter", []string{"block_bytes", "blocks", "pool_mib"}},
	{probeSaveFlash, "FlashD2H, one copy and the CPU's scatter to blocks anywhere in a pinned pool, overlapped; until every block is written", "ss_flash_d2h", []string{"block_bytes", "blocks", "pool_mib", "threads"}},
	{probeLinears, "the four linears of one layer; " + gpuTime, "ss_linear", []string{"tokens"}},
	{probeClock, "the same, some times over, so long after they began to run without pause; before that the card copied within HBM; GPU time of one", "ss_linear", []string{"tokens", "after_ms"}},
	{probePrompt, "the linears and the attention of the chunks of two prompts, one chunk behind another, behind so many tokens of the first prompt or the second; before all of them the card decoded densely; GPU time of one layer", "ss_linear, ss_prefill", []string{"tokens", "prefix_tokens", "prompt"}},
	{probeDecodes, "the linears and the dense attention of decodes, layer after layer, so long after linears of 2,048 tokens that ran without pause; GPU time of one layer", "ss_linear, ss_decode", []string{"requests", "context_tokens", "after_ms"}},
	{probeRested, "linears after they ran without pause and the card then copied within HBM for so long; mean GPU time of the next layers", "ss_linear", []string{"tokens", "rest_ms", "layers"}},
	{probeRestedIdle, "the same, the card having done nothing for so long", "ss_linear", []string{"tokens", "rest_ms", "layers"}},
	{probeRestedDense, "the same, the card having decoded densely for so long", "ss_linear, ss_decode", []string{"tokens", "rest_ms", "layers"}},
	{probeChunk, "the linears and the attention of a prompt's chunk, layer after layer without pause; " + gpuTime + " of one layer", "ss_linear, ss_prefill", []string{"tokens", "prefix_tokens"}},
	{probePointwise, "what one layer has beside linears and attention: two norms with their residual sums, rope with the write of K and V to their blocks, silu(gate) up; " + gpuTime,
		"ss_rmsnorm, ss_rope, ss_silu_mul", []string{"tokens"}},
	{probeHead, "the last norm, the LM head and the greedy token of some rows; " + gpuTime, "ss_rmsnorm, ss_linear, ss_argmax", []string{"rows"}},
	{probeEmbed, "the embedding of tokens; " + gpuTime, "ss_embed", []string{"tokens"}},
	{probePrefill, "causal attention of one chunk, K and V of a first chunk contiguous, of a later one and of what is before it in KV blocks anywhere; " + gpuTime, "ss_prefill", []string{"query_tokens", "prefix_tokens"}},
	{probeChunked, "the same of a whole prompt in one layer, chunk after chunk; " + gpuTime, "ss_prefill", []string{"prompt_tokens", "chunk_tokens"}},
	{probeDense, "paged dense decode attention of one layer, L2 flushed; " + gpuTime, "ss_decode", []string{"batch", "context_tokens"}},
	{probeDenseUneven, "dense decode attention of unequal contexts with this mean, a geometric row whose last is `spread` times its first, in pages of all KV heads anywhere in a live layer's part of the KV pool; L2 flushed; " + gpuTime, "ss_decode", []string{"batch", "context_tokens", "spread"}},
	{probeSparse, "decode attention to selected blocks, L2 flushed; " + gpuTime, "ss_decode", []string{"batch", "budget_tokens"}},
	{probePSA, "PSA decode that attends to all blocks of the budget, in rounds of a microbatch of blocks, L2 flushed; " + gpuTime, "ss_psa", []string{"batch", "budget_tokens", "micro_blocks"}},
	{probePSALaunches, "the same with a launch for each microbatch; " + gpuTime, "ss_psa", []string{"batch", "budget_tokens", "micro_blocks"}},
	{probePSAUneven, "PSA decode of lists that end in different rounds, most of them early: the one of rank x lasts x^3 of the longest; L2 flushed; " + gpuTime, "ss_psa", []string{"batch", "longest_tokens", "micro_blocks"}},
	{probePSALaunchCalls, "PSA whose microbatches load a block each, from the call that enqueues all of them ahead; its host time alone, of a microbatch", "ss_psa_pipeline", []string{"batch", "budget_tokens", "micro_blocks"}},
	{probeSelect, "scores and top-k, L2 flushed; " + gpuTime, "ss_select", []string{"batch", "context_tokens", "budget_tokens"}},
	{probeBesideNone, "a layer's linears and prefill attention alone; " + gpuTime, "ss_linear, ss_prefill", []string{"tokens"}},
	{probeBesideSave, "the same while the GPU scatter kernel saves without pause", "ss_gpu_scatter", []string{"tokens"}},
	{probeBesideLoad, "the same while FlashH2D loads without pause", "ss_flash_h2d", []string{"tokens"}},
	{probeBesideFlash, "the same while FlashD2H saves without pause", "ss_flash_d2h", []string{"tokens"}},
	{probeCallsNone, calls, "ss_empty, ss_memcpy", []string{"launches", "copies"}},
	{probeCallsSave, calls + ", while a second thread saves with a memcpy a block without pause", "ss_empty, ss_memcpy", []string{"launches", "copies"}},
	{probeCallsLoad, calls + ", while a second thread loads with a memcpy a block without pause", "ss_empty, ss_memcpy", []string{"launches", "copies"}},
	{probeBothLoad, "a load of blocks of 16 KiB with a memcpy each; beside 1, while a second thread saves such blocks without pause; submit to done, host clock", "ss_memcpy_blocks", []string{"blocks", "beside"}},
	{probeBothSave, "a save of blocks of 16 KiB with a memcpy each; beside 1, while a second thread loads such blocks without pause; submit to done, host clock", "ss_memcpy_blocks", []string{"blocks", "beside"}},
	{probeBothTurn, "the kernel that brings a layer's lists down, and the wait for it; beside 1, while a second thread saves blocks of 16 KiB with a memcpy each without pause; host clock", "ss_carry", []string{"bytes", "beside"}},
	{probeLayersNone, "prefill of a chunk in some layers, nothing saved; until all is done", "ss_linear, ss_prefill", []string{"chunk_tokens", "prefix_tokens", "layers"}},
	{probeLayersMemcpy, "the same, each layer's KV saved by one memcpy a block", "ss_memcpy_blocks", []string{"chunk_tokens", "prefix_tokens", "layers"}},
	{probeLayersGPU, "the same, each layer's KV saved by the GPU scatter kernel", "ss_gpu_scatter", []string{"chunk_tokens", "prefix_tokens", "layers"}},
	{probeLayersFlash, "the same, each layer's KV saved by FlashD2H", "ss_flash_d2h", []string{"chunk_tokens", "prefix_tokens", "layers"}},
	{probePrefillMemcpy, "the same, each layer's KV saved by one memcpy a block to pages anywhere in a pinned pool, in the order and with as many calls a layer as the serving loop's, launched no further ahead of the saves than its save buffer allows", "ss_memcpy_blocks", []string{"chunk_tokens", "prefix_tokens", "layers", "pool_mib"}},
	{probeLive, "a decode step of the live loop, dense, KV in HBM: what of it GPU events do not see", "all of a layer", []string{"layers", "requests"}},
	{probeLiveOffload, "the same with selected blocks and offloading", "all of a layer", []string{"layers", "requests"}},
	{probeLiveLoads, "the same in less HBM, so that each layer loads blocks, this many on average", "all of a layer", []string{"layers", "requests", "loads"}},
	{probeLiveLeaving, "a decode step of the live loop with selected blocks and offloading, of a server that requests leave one after another, where nothing changes: what of it GPU events do not see", "all of a layer", []string{"layers", "requests"}},
	{probeLiveWhole, "steps of that server in which a request, of this many at first, has a block more, so that its lists are looked up whole: by how much they are longer", "all of a layer", []string{"layers", "requests"}},
	{probeLiveFreed, "steps of that server behind a request's end, whose blocks the cache takes back: by how much they are longer", "all of a layer", []string{"layers", "requests"}},
	{probeLivePSA, "as " + probeLiveLeaving + " with PSA, the layer's longest list of so many microbatches in the mean", "all of a layer", []string{"layers", "requests", "rounds"}},
	{probeLiveUnsplit, "steps of the server of " + probeLiveLeaving + " without events between their phases: all of the step", "all of a layer", []string{"layers", "requests"}},
	{probeLiveUnsplitPSA, "the same of the server of " + probeLivePSA, "all of a layer", []string{"layers", "requests", "rounds"}},
	{probeLiveHeld, "the same as " + probeLiveUnsplit + " with KV in HBM alone, so that no layer asks the CPU", "all of a layer", []string{"layers", "requests"}},
	{probeLiveHeldPSA, "the same with PSA", "all of a layer", []string{"layers", "requests", "rounds"}},
	{probeLiveDense, "the same with attention to the whole context", "all of a layer", []string{"layers", "requests"}},
	{probeLiveChunk, "steps of that server with a chunk of a prompt behind so many tokens of it, with the decodes of the prompts before and the first few tokens of the prompt behind", "all of a layer", []string{"layers", "prefix_tokens"}},
	{probeLivePrompt, "steps with a chunk behind so many tokens of its prompt, of a server of one request at a time: before its first chunk the card has decoded the one before", "all of a layer", []string{"layers", "prefix_tokens"}},
	{probeLiveLookup, "decode steps of such a server whose lists the GPU looks up, none of their blocks missing: all of the step", "all of a layer", []string{"layers", "requests"}},
	{probeLiveLookupPSA, "the same with PSA", "all of a layer", []string{"layers", "requests", "rounds"}},
	{probeLiveCopies, "a decode step of the live loop that loads with a memcpy a block: the host's time", "all of a layer", []string{"layers", "requests", "loads"}},
	{probeLiveTight, "the same as " + probeLiveLookup + " in so little HBM that each layer loads, so many blocks in the mean", "all of a layer", []string{"layers", "requests", "missing"}},
	{probeLiveTightPSA, "the same with PSA", "all of a layer", []string{"layers", "requests", "rounds", "missing"}},
	{probeLiveCPU, "a decode step whose lists the GPU looks up, so many blocks of a layer missing: what the CPU is busy before it waits for the step's end", "all of a layer", []string{"layers", "requests", "missing"}},
	{probeLiveCPUPSA, "such a step with PSA whose lists the GPU looks up, so many blocks of a layer missing: what the CPU is busy, waits for verdicts and the calls between them apart", "all of a layer", []string{"layers", "requests", "rounds", "missing"}},
}

// leavingProbes are steps of servers that requests leave one after another.
var leavingProbes = []string{
	probeLiveLeaving, probeLiveWhole, probeLiveFreed, probeLivePSA, probeLiveUnsplit, probeLiveUnsplitPSA, probeLiveHeld, probeLiveHeldPSA,
	probeLiveDense, probeLiveChunk, probeLivePrompt, probeLiveLookup, probeLiveLookupPSA, probeLiveTight, probeLiveTightPSA, probeLiveCPU, probeLiveCPUPSA,
}

// turnProbes are those of them whose layers wait for the CPU.
var turnProbes = []string{probeLiveLeaving, probeLiveWhole, probeLiveFreed, probeLivePSA, probeLiveUnsplit, probeLiveUnsplitPSA}

// clockProbes are linears, with attention or without, timed for what was done before.
var clockProbes = []string{probeClock, probePrompt, probeDecodes, probeRested, probeRestedIdle, probeRestedDense}

// trainProbes are those of them that come one behind another.
var trainProbes = []string{probeClock, probePrompt, probeDecodes}

// behindProbes are kernels behind the weights of a layer, as in a decode step.
var behindProbes = []string{probeBehindNone, probeBehindLists, probeBehindWrite, probeBehindTable, probeBehindLookup, probeBehindMissing, probeBehindGather, probeBehindLoad}

// Probes lists every kind of measurement, in the order of measuring.
func Probes() []Probe { return slices.Clone(probes) }

// shaped are the probes whose points name a model shape.
var shaped = slices.Concat(behindProbes, liveProbes, leavingProbes, []string{
	probeLiveCopies, probeKVWrite, probeRope, probeDigest, probeRing, probeLookup, probeLookupMissing,
	probeLinears, probeClock, probePrompt, probeDecodes, probeRested, probeRestedIdle, probeRestedDense, probeChunk, probePointwise, probeHead, probeEmbed, probePrefill, probeChunked,
	probeDense, probeDenseUneven, probeSparse, probePSA, probePSALaunches, probePSAUneven, probePSALaunchCalls, probeSelect,
	probeBesideNone, probeBesideSave, probeBesideLoad, probeBesideFlash,
	probeLayersNone, probeLayersMemcpy, probeLayersGPU, probeLayersFlash, probePrefillMemcpy,
})

func probeOf(name string) *Probe {
	for i := range probes {
		if probes[i].Name == name {
			return &probes[i]
		}
	}
	return nil
}

// former are probes of older samples, which no plan has any more.
var former = []string{probeCallsLoad, probeLiveCopies}

// mayBeNone are the axes that may be 0.
var mayBeNone = []string{"prefix_tokens", "missing", "beside"}

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

// layerShapes returns a built-in model for each distinct shape that ok tells
// apart: those of attention first, then by name.
func layerShapes(key func(m *hw.Model) string) []string {
	var out []string
	seen := map[string]bool{}
	for _, name := range append(slices.Clone(shapes), hw.ModelNames()...) {
		m, err := shapeModel(name)
		if err != nil {
			panic(err) // built in
		}
		if k := key(m); !seen[k] {
			seen[k] = true
			out = append(out, name)
		}
	}
	return out
}

// linearShapes and headShapes tell models apart by what their linears and
// their LM heads cost.
func linearShapes() []string {
	return layerShapes(func(m *hw.Model) string {
		return fmt.Sprint(m.Hidden, m.QHeads, m.KVHeads, m.HeadDim, m.FFN)
	})
}

func headShapes() []string {
	return layerShapes(func(m *hw.Model) string { return fmt.Sprint(m.Hidden, m.Vocab) })
}

// pointwiseShapes are the linears' shapes that the rope kernel takes.
func pointwiseShapes() []string {
	return slices.DeleteFunc(linearShapes(), func(name string) bool {
		m, err := shapeModel(name)
		return err != nil || m.HeadDim != 64 && m.HeadDim != 128
	})
}

// shapeModel returns the model that stands for a shape.
func shapeModel(name string) (*hw.Model, error) {
	m, err := hw.LoadModel(name)
	if err != nil {
		return nil, err
	}
	return &m, nil
}
