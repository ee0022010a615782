package sim

import (
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// Spec is the configuration of one serving system: the table [system] and the tables of its parts.
// Presets for the papers' systems are in package experiments. docs/configuration.md prints the
// comments, units and ranges of the fields.
type Spec struct {
	// of the system: its results' folder and its row in tables; [[systems]] only
	Name string `toml:"name"`
	// serving engine: scheduler, kernels and host times (list engines)
	Engine string `toml:"engine"`
	// what the engine is started for: its default max_tokens and max_requests depend on it and on the
	// card
	Use string `toml:"use" used:"batches"`
	// GPUs that share each layer (tensor parallelism): 1, 2, 4 or 8. Figures of HBM are of each GPU
	TensorParallel int `toml:"tensor_parallel" unit:"GPUs" range:">= 1, <= 8"`
	// GPUs over which experts are spread whole instead of cut (expert parallelism): tensor_parallel,
	// or a divisor of it, where the rest cut them; 1: all GPUs cut each
	ExpertParallel int `toml:"expert_parallel" used:"experts" unit:"GPUs" range:">= 1, <= 8"`
	// share of HBM that the server may use (vLLM's gpu_memory_utilization)
	Utilisation float64 `toml:"utilisation" unit:"share" range:"> 0, <= 1"`
	// HBM for KV, metadata and prefill buffers; 0 = all that is free
	KVGiB float64 `toml:"kv_gib" unit:"GiB" range:">= 0, <= 1e+06"`
	// host memory for KV, which the GPUs of tensor parallelism share; above 0 with offload
	DRAMGiB float64 `toml:"dram_gib" used:"dram" unit:"GiB" range:">= 0, <= 1e+06"`
	// size of a KV block
	BlockTokens int `toml:"block_tokens" unit:"tokens" range:">= 1, <= 65536"`
	// scheduler that fills batches
	Scheduler string `toml:"scheduler"`
	// largest number of requests in a batch
	MaxRequests int `toml:"max_requests" unit:"requests" range:">= 1, <= 1e+06"`
	// largest number of tokens in a batch
	MaxTokens int `toml:"max_tokens" unit:"tokens" range:">= 1, <= 1e+09"`
	// share of all blocks kept free at admission
	Watermark float64 `toml:"watermark" unit:"share" range:">= 0, < 1"`
	// how tokens are drawn: top-p sorts the logits of every request; model is top-p where the model's
	// generation_config.json has a top_p, else random
	Sampling string `toml:"sampling"`

	Selection   SelectionSpec   `toml:"selection"`
	Offload     OffloadSpec     `toml:"offload"`
	Prefill     PrefillSpec     `toml:"prefill"`
	PrefixCache PrefixCacheSpec `toml:"prefix_cache"`
	Speculation SpeculationSpec `toml:"speculation"`
	Simulation  SimulationSpec  `toml:"simulation"`
}

// SelectionSpec says which KV blocks decodes attend to: the table [selection].
type SelectionSpec struct {
	// decodes attend to a selection of the blocks; false: to all
	On bool `toml:"on"`
	// algorithm that selects (list selections)
	Policy string `toml:"policy" used:"selects,scored"`
	// KV that a head attends to, sinks and recent blocks included, where the selection has a fixed
	// size
	BudgetTokens int `toml:"budget_tokens" used:"sparse,fixed" unit:"tokens" range:">= 1, <= 1e+09"`
	// number of first blocks that are always selected
	SinkBlocks int `toml:"sink_blocks" used:"sparse" unit:"blocks" range:">= 0, <= 1e+06"`
	// number of newest blocks that are always selected, at least 1
	RecentBlocks int `toml:"recent_blocks" used:"sparse" unit:"blocks" range:">= 0, <= 1e+06"`
	// first layers that keep full attention
	DenseLayers int `toml:"dense_layers" used:"sparse" unit:"layers" range:">= 0, <= 10000"`
	// file of recorded selections to replay; empty: drawn from the score process
	Recording string `toml:"recording" used:"sparse"`
	// where the selection has a fixed size, which heads select together: the query heads that share a
	// KV head, or each query head by itself, and their KV head attends to all that they select
	Per string `toml:"per" used:"sparse,fixed,groups,drawn"`
	// psa: share of the attention to reach
	Epsilon float64 `toml:"epsilon" used:"psa" range:"> 0, < 1"`
	// psa: blocks of one iteration of progressive attention
	Microbatch int `toml:"microbatch" used:"psa" unit:"blocks" range:">= 1, <= 1e+06"`
	// psa: the next iteration's loads overlap with the attention of this one
	Pipelined bool `toml:"pipelined" used:"psa,offload"`
	// psa: the heads of a layer end together, or each KV head by itself
	Stop string `toml:"stop" used:"psa"`
	// infinigen: how far below the highest score a token is still selected
	Margin float64 `toml:"margin" used:"infinigen" unit:"q·k / sqrt(d)" range:">= 0, <= 1e+06"`
}

// OffloadSpec says how KV moves between DRAM and HBM: the table [offload].
type OffloadSpec struct {
	// DRAM holds all KV and HBM is a cache of it
	On bool `toml:"on"`
	// how missing blocks are loaded: one memcpy each, or one gather kernel (FlashH2D)
	Load string `toml:"load" used:"offload"`
	// how blocks are saved: one memcpy each, a scatter kernel, or a copy and the CPU (FlashD2H)
	Save string `toml:"save" used:"offload"`
	// what finds the selected blocks that are missing in HBM; gpu needs offload.load = "flash"
	Lookup string `toml:"lookup" used:"offload"`
	// order in which blocks leave HBM (list evictions)
	Eviction string `toml:"eviction" used:"cache"`
	// one pool of HBM blocks for all layers, or one a layer
	Pool string `toml:"pool" used:"cache"`
	// KV queued to be saved before computation stalls
	SaveBufferMiB float64 `toml:"save_buffer_mib" used:"offload" unit:"MiB" range:">= 0, <= 1e+06"`
	// batches are limited so that their working sets fit in HBM (Algorithm 1)
	BatchControl bool `toml:"batch_control" used:"cache"`
	// decode steps whose selections form the working set
	WorkingSetSteps int `toml:"working_set_steps" used:"cache,sparse" unit:"steps" range:">= 1, <= 100000"`
	// HiSparse: tokens of a decoding request that each layer keeps in a buffer in HBM; 0: HBM is one
	// cache for all requests. In blocks, each of which stands for
	// block_tokens single tokens
	HotBuffer int `toml:"hot_buffer" unit:"tokens" range:">= 0, <= 1e+08"`
	// HiSparse: when a request frees its other KV in HBM: when its prefill ends, or when HBM is short
	HotRelease string `toml:"hot_release" used:"hot"`
	// host memory for KV as a multiple of that in HBM, at most system.dram_gib; 0: system.dram_gib
	HostPoolRatio float64 `toml:"host_pool_ratio" used:"hot" range:">= 0, <= 1e+06"`
}

// PrefillSpec says how prompts are computed: the table [prefill].
type PrefillSpec struct {
	// how prompts are split: not, in chunks of tokens, by layers, or both
	Split string `toml:"split"`
	// largest chunk of prefill
	ChunkTokens int `toml:"chunk_tokens" used:"chunks" unit:"tokens" range:">= 1, <= 1e+09"`
	// largest layer-segmented prefill in a batch, in tokens times layers; 0 = chunk_tokens x layers
	MaxInject int64 `toml:"max_inject" used:"layers" unit:"token-layers" range:">= 0, <= 1e+12"`
	// what happens to a prompt beyond the maximum: its middle is removed, or it is refused
	OverLength string `toml:"over_length"`
	// longest prompt; 0 = the model's maximum
	MaxPromptTokens int `toml:"max_prompt_tokens" unit:"tokens" range:">= 0, <= 1e+08"`
	// what prompts attend to while they are prefilled (list prefills)
	Attention string `toml:"attention"`
	// minference: a file of heads' patterns in its format, or a published mix (list prefills)
	Pattern string `toml:"pattern" used:"minference"`
	// a-shape: first tokens, always attended to
	SinkTokens int `toml:"sink_tokens" used:"a-shape" unit:"tokens" range:">= 1, <= 1e+09"`
	// a-shape: newest tokens, always attended to
	RecentTokens int `toml:"recent_tokens" used:"a-shape" unit:"tokens" range:">= 1, <= 1e+09"`
	// vertical-slash: columns attended to by all rows
	Vertical int `toml:"vertical" used:"vertical-slash" unit:"lines" range:">= 1, <= 1e+09"`
	// vertical-slash: diagonals attended to
	Slash int `toml:"slash" used:"vertical-slash" unit:"lines" range:">= 1, <= 1e+09"`
	// block-sparse: blocks of 64 keys that a block of 64 queries attends to
	Blocks int `toml:"blocks" used:"block-sparse" unit:"blocks" range:">= 1, <= 1e+06"`
}

// PrefixCacheSpec says how the KV of earlier prompts is kept and used again: the table
// [prefix_cache].
type PrefixCacheSpec struct {
	// reuse of the KV of earlier prompts with the same beginning: none, by blocks (vLLM V1), or by a
	// radix tree of pages of block_tokens (SGLang)
	Mode string `toml:"mode"`
	// host memory for prefixes below HBM, of system.dram_gib; 0: none
	DRAMGiB float64 `toml:"dram_gib" unit:"GiB" range:">= 0, <= 1e+06"`
	// SSD for prefixes below that; 0: none
	SSDGiB float64 `toml:"ssd_gib" unit:"GiB" range:">= 0, <= 1e+06"`
	// drive of ssd_gib
	Drive string `toml:"drive" used:"ssd"`
	// unit in which prefixes are moved and kept below HBM; a multiple of block_tokens
	Chunk int `toml:"chunk" used:"tiers" unit:"tokens" range:">= 1, <= 1e+06"`
	// order in which chunks leave DRAM and SSD; belady knows the trace: next use furthest ahead first
	Eviction string `toml:"eviction" used:"tiers"`
	// when KV is written below HBM: when computed, when hit so often, or when it leaves the tier above
	Write string `toml:"write" used:"tiers"`
	// selective: hits in HBM after which it is written
	WriteHits int `toml:"write_hits" used:"tiers,selective" unit:"hits" range:">= 1, <= 255"`
	// whether what is below HBM is loaded, computed again, or whichever takes less time
	Load string `toml:"load" used:"tiers"`
	// a hit below HBM of fewer tokens is computed
	LoadTokens int `toml:"load_tokens" used:"tiers" unit:"tokens" range:">= 0, <= 1e+06"`
	// what waits for a load: its request while others run (vLLM's offloading connector), each layer of
	// its step for its part (HiCache), or its step
	Overlap string `toml:"overlap" used:"tiers"`
	// what a prompt attends to of its cached prefix in DRAM: all, or what each chunk and KV head
	// selects
	Attend string `toml:"attend" used:"cache,hits"`
	// how much a token of a prefix loaded from DRAM counts towards max_tokens, max_inject and similar
	// limits, relative to a computed token
	LoadWeight float64 `toml:"load_weight" used:"cache,hits" range:">= 0, <= 1000"`
}

// SpeculationSpec says how tokens are drafted: the table [speculation].
type SpeculationSpec struct {
	// tokens that MTP layers draft for each request that decodes; the next step verifies them with one
	// more (speculation). 0: none. Needs a model with mtp_layers, full attention in HBM and no prefix
	// cache. Tokens of a step come together: of their TBT the first has all of the step, the others 0
	Tokens int `toml:"tokens" unit:"tokens" range:">= 0, <= 16"`
	// probability that a drafted token is accepted where those before it are
	Acceptance float64 `toml:"acceptance" used:"drafts" unit:"share" range:">= 0, < 1"`
}

// SimulationSpec says how exactly the cache is simulated: the table [simulation].
type SimulationSpec struct {
	// simulate every (layer, KV head) group, or a sample with a cache scaled to it
	Heads string `toml:"heads" used:"cache"`
	// groups in the sample
	Groups int `toml:"groups" used:"cache,sampled" unit:"groups" range:">= 1, <= 1e+06"`
}

// Values of Spec.SelectPer, Spec.PSAStop and Spec.Lookup.
const (
	PerKVHead    = "kv_head"
	PerQueryHead = "query_head"
	PSAStopLayer = "layer"
	PSAStopHead  = "head"
	LookupHost   = "host"
	LookupGPU    = "gpu"
)

// Values of Spec.PrefixAttention; an empty one is PrefixDense.
const (
	PrefixDense    = "dense"
	PrefixSelected = "selected"
)

// GPULookup reports whether the GPU finds the selected blocks that are in HBM, so that no layer
// waits for the host.
func (s *Spec) GPULookup() bool { return s.Offload.On && s.Offload.Lookup == LookupGPU }

// Values of Spec.PrefillAttention in addition to the pattern names.
const (
	PrefillDense      = "dense"
	PrefillMInference = "minference" // a pattern for each head
)

// PrefillHead returns the sparse prefill pattern of all heads; false if there is no single pattern.
func (s *Spec) PrefillHead() (pattern.Head, bool) {
	h, ok := pattern.Published(pattern.Kind(s.Prefill.Attention))
	switch h.Kind {
	case pattern.AShape:
		h.A, h.B = s.Prefill.SinkTokens, s.Prefill.RecentTokens
	case pattern.VerticalSlash:
		h.A, h.B = s.Prefill.Vertical, s.Prefill.Slash
	case pattern.BlockSparse:
		h.A = s.Prefill.Blocks
	}
	return h, ok && h.Kind != pattern.Dense
}

// SparsePrefill reports whether prefill attention is sparse.
func (s *Spec) SparsePrefill() bool {
	return s.Prefill.Attention != PrefillDense && s.Prefill.Attention != ""
}

// Sparse reports whether decode attention selects blocks.
func (s *Spec) Sparse() bool { return s.Selection.On && s.Selection.Policy != dsa.FullName }

// Progressive reports whether decode attention runs in microbatches until it reaches its threshold.
func (s *Spec) Progressive() bool { return s.Sparse() && s.Selection.Policy == "psa" }

// Policy returns the selection algorithm of sparse attention for a model with the given number of
// query heads per KV head.
func (s *Spec) Policy(queries int) (dsa.Policy, *dsa.Algorithm, error) {
	if s.Selection.Per != PerQueryHead {
		queries = 1
	}
	named, err := dsa.AlgorithmNamed(s.Selection.Policy)
	if err != nil {
		return nil, nil, err
	}
	return named.Make(&dsa.Options{
		Blocks: Candidates(s), Epsilon: s.Selection.Epsilon, Microbatch: s.Selection.Microbatch,
		Pipelined: s.Selection.Pipelined,
		HeadStops: s.Selection.Stop == PSAStopHead, Margin: s.Selection.Margin, Queries: queries,
	}), named, nil
}
